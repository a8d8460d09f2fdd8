package backendtest

import (
	"math/rand/v2"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// typedEdges are the operations on edges of four types, of which one has no edges.
func typedEdges(b *graphops.Block, c int) []testCase {
	r := rand.New(rand.NewPCG(uint64(b.NumDst), uint64(c)))
	types := make([]uint16, b.NumEdges())
	for e := range types {
		types[e] = []uint16{0, 1, 3}[r.IntN(3)]
	}
	h, table := random(b.NumSrc, c).in(tensor.SrcSpace(b)), random(2*b.NumSrc, c).data
	ids := make([]int32, b.NumSrc)
	rows := ref.New(b.NumSrc, c)
	for i := range ids {
		ids[i] = r.Int32N(int32(2 * b.NumSrc))
		for j := range c {
			rows.Set(i, j, float64(table[int(ids[i])*c+j]))
		}
	}
	var cases []testCase
	for _, op := range []tensor.Op{tensor.Sum, tensor.Mean} {
		for _, bases := range []int{1, 3} {
			coef := random(4, bases)
			suffix := "/" + op.String() + []string{"", "/one basis", "", "/bases"}[bases]
			cases = append(cases, testCase{
				"AggregateTyped" + suffix,
				[]input{h, coef},
				func(f *fwd, x []*tns) *tns { return f.AggregateTyped(b, x[0], types, x[1], op) },
				func(x []mat) mat { return ref.AggregateTyped(b, x[0], types, x[1], op == tensor.Mean) },
			}, testCase{
				"AggregateTyped/table" + suffix,
				[]input{coef},
				func(f *fwd, x []*tns) *tns {
					return f.AggregateTyped(b, f.RowsInput(table, c, ids, nil), types, x[0], op)
				},
				func(x []mat) mat { return ref.AggregateTyped(b, rows, types, x[0], op == tensor.Mean) },
			}, testCase{
				"AggregateTyped/constant coefficients, table" + suffix,
				[]input{random(bases*c, 2)},
				func(f *fwd, x []*tns) *tns {
					y := f.AggregateTyped(b, f.RowsInput(table, c, ids, nil), types, f.Input(4, bases, coef.data, nil), op)
					return f.MatMul(y, x[0])
				},
				func(x []mat) mat {
					return ref.MatMul(ref.AggregateTyped(b, rows, types, ref.From(4, bases, coef.data), op == tensor.Mean), x[0])
				},
			})
		}
	}
	return cases
}

// someKinds are edges of three types.
func someKinds(edges int) ops.Kinds {
	t := ops.Kinds{N: 3, Types: make([]uint16, edges)}
	for e := range t.Types {
		t.Types[e] = uint16(e * e % 3)
	}
	return t
}
