package ref

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// The expected values are computed by hand, because the reference is the standard for all other
// implementations.
func TestByHand(t *testing.T) {
	m := func(rows, cols int, v ...float64) Matrix { return Matrix{rows, cols, v} }
	x := m(2, 2, 1, 2, 3, 4)
	// 0 <- 1, 0 <- 2, 0 <- 2; 1 isolated; 2 <- 2 (its own source is row 0 of 3).
	b := graphops.HostBlock{NumDst: 3, NumSrc: 3, Indptr: []int64{2, 5, 5, 6}, Indices: []int32{9, 9, 1, 2, 2, 2}}.Block()
	h := m(3, 1, 10, -1, 4)
	for _, c := range []struct {
		name string
		got  Matrix
		want Matrix
	}{
		{"matmul", MatMul(x, m(2, 1, 5, 6)), m(2, 1, 17, 39)},
		{"transpose", m(1, 2, 1, 2).T(), m(2, 1, 1, 2)},
		{"linear", Linear(x, m(1, 2, 1, -1), m(1, 1, 10)), m(2, 1, 9, 9)},
		{"sum", Sum(x), m(1, 1, 10)},
		{"mulrows", MulRows(x, m(2, 1, 2, -1)), m(2, 2, 2, 4, -3, -4)},
		{"concat", Concat(x, m(2, 1, 7, 8)), m(2, 3, 1, 2, 7, 3, 4, 8)},
		{"rows", Rows(x, 1, 2), m(1, 2, 3, 4)},
		{"logsoftmax", LogSoftmax(m(1, 2, 0, math.Log(3))), m(1, 2, math.Log(0.25), math.Log(0.75))},
		{"normalize", L2Normalize(m(2, 2, 3, 4, 0, 0)), m(2, 2, 0.6, 0.8, 0, 0)},
		{"gather sources", GatherSrc(b, h), m(4, 1, -1, 4, 4, 4)},
		{"gather destinations", GatherDst(b, h), m(4, 1, 10, 10, 10, 4)},
		{"sum of neighbours", Aggregate(b, h, tensor.Sum), m(3, 1, 7, 0, 4)},
		{"mean of neighbours", Aggregate(b, h, tensor.Mean), m(3, 1, 7.0/3, 0, 4)},
		{"max of neighbours", Aggregate(b, h, tensor.Max), m(3, 1, 4, 0, 4)},
		{"heads", AggregateHeads(b, m(3, 2, 10, 20, -1, -2, 4, 8), m(4, 2, 1, 10, 2, 20, 3, 30, 1, 0)), m(3, 2, 19, 380, 0, 0, 4, 0)},
		{"edge softmax", EdgeSoftmax(b, m(4, 1, 0, math.Log(2), 0, 7)), m(4, 1, 0.25, 0.5, 0.25, 1)},
		// Types 1, 0, 0 into row 0, and 1 into row 2.
		{"typed sum", AggregateTyped(b, h, []uint16{1, 0, 0, 1}, m(2, 2, 1, 10, 2, 20), false), m(3, 2, 6, 60, 0, 0, 8, 80)},
		{"typed mean", AggregateTyped(b, h, []uint16{1, 0, 0, 1}, m(2, 2, 1, 10, 2, 20), true), m(3, 2, 2, 20, 0, 0, 8, 80)},
		{"stack", Stack(x, m(1, 2, 7, 8)), m(3, 2, 1, 2, 3, 4, 7, 8)},
		{"mean of heads", HeadMean(m(1, 4, 1, 2, 3, 6), 2), m(1, 2, 2, 4)},
		{"dot of heads", HeadDot(m(1, 4, 1, 2, 3, 6), m(1, 4, 1, 10, 1, -1), 2), m(1, 2, 21, -3)},
		{"row norm", RowNorm(m(1, 2, 1, 3), 0), m(1, 2, -1, 1)},
		{"column norm", ColNorm(m(2, 1, 1, 3), 3), m(2, 1, -0.5, 0.5)},
		{"mulcols", MulCols(x, m(1, 2, 2, -1)), m(2, 2, 2, -2, 6, -4)},
		{"elu", Unary(ops.ELUOp, m(1, 2, -1, 1), 1), m(1, 2, math.Exp(-1)-1, 1)},
		{"leaky", Unary(ops.LeakyReLUOp, m(1, 2, -2, 2), 0.5), m(1, 2, -1, 2)},
	} {
		same := c.got.Rows == c.want.Rows && c.got.Cols == c.want.Cols &&
			slices.EqualFunc(c.got.Data, c.want.Data, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 })
		if !same {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}
