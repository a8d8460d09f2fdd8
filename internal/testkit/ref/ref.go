// Package ref computes the operations of package tensor in float64 with the
// plainest loops: what every backend is tested against. It is written from the
// formulas, shares no code with the backends, and is slow.
//
// Functions return new matrices, row-major [rows, cols], and panic by index
// where shapes do not fit.
package ref

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/philox"
)

// Matrix is a row-major float64 matrix.
type Matrix struct {
	Rows, Cols int
	Data       []float64
}

// New is a matrix of zeros.
func New(rows, cols int) Matrix { return Matrix{rows, cols, make([]float64, rows*cols)} }

// From is a matrix with the given float32 elements.
func From(rows, cols int, data []float32) Matrix {
	m := New(rows, cols)
	for i, v := range data {
		m.Data[i] = float64(v)
	}
	return m
}

// At is element (r, c).
func (m Matrix) At(r, c int) float64 { return m.Data[r*m.Cols+c] }

// Set sets element (r, c).
func (m Matrix) Set(r, c int, v float64) { m.Data[r*m.Cols+c] = v }

// fill is the matrix with element (r, c) = at(r, c).
func fill(rows, cols int, at func(r, c int) float64) Matrix {
	m := New(rows, cols)
	for r := range rows {
		for c := range cols {
			m.Set(r, c, at(r, c))
		}
	}
	return m
}

// T is the transpose.
func (m Matrix) T() Matrix { return fill(m.Cols, m.Rows, func(r, c int) float64 { return m.At(c, r) }) }

// Map applies fn to every element.
func (m Matrix) Map(fn func(v float64) float64) Matrix {
	return fill(m.Rows, m.Cols, func(r, c int) float64 { return fn(m.At(r, c)) })
}

// Zip applies fn to the elements of a and b.
func Zip(a, b Matrix, fn func(x, y float64) float64) Matrix {
	return fill(a.Rows, a.Cols, func(r, c int) float64 { return fn(a.At(r, c), b.At(r, c)) })
}

// MatMul is a·b.
func MatMul(a, b Matrix) Matrix {
	return fill(a.Rows, b.Cols, func(r, c int) float64 {
		s := 0.0
		for k := range a.Cols {
			s += a.At(r, k) * b.At(k, c)
		}
		return s
	})
}

// Linear is x·wᵀ + bias, with bias [1,out] or of no elements.
func Linear(x, w, bias Matrix) Matrix {
	y := MatMul(x, w.T())
	if len(bias.Data) == 0 {
		return y
	}
	return fill(y.Rows, y.Cols, func(r, c int) float64 { return y.At(r, c) + bias.Data[c] })
}

// Sum is the sum of all elements, [1,1].
func Sum(x Matrix) Matrix {
	out := New(1, 1)
	for _, v := range x.Data {
		out.Data[0] += v
	}
	return out
}

// MulRows is w[r]·x[r,:].
func MulRows(x, w Matrix) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 { return w.Data[r] * x.At(r, c) })
}

// AddRow is x[r,:] + row.
func AddRow(x, row Matrix) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 { return x.At(r, c) + row.Data[c] })
}

// Concat puts columns side by side.
func Concat(xs ...Matrix) Matrix {
	cols := 0
	for _, x := range xs {
		cols += x.Cols
	}
	out := New(xs[0].Rows, cols)
	for r := range out.Rows {
		at := 0
		for _, x := range xs {
			for c := range x.Cols {
				out.Set(r, at+c, x.At(r, c))
			}
			at += x.Cols
		}
	}
	return out
}

// Rows is the rows [lo, hi).
func Rows(x Matrix, lo, hi int) Matrix {
	return fill(hi-lo, x.Cols, func(r, c int) float64 { return x.At(lo+r, c) })
}

// LogSoftmax is x[r,c] - log Σ_j e^x[r,j].
func LogSoftmax(x Matrix) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 {
		top := math.Inf(-1)
		for j := range x.Cols {
			top = math.Max(top, x.At(r, j))
		}
		sum := 0.0
		for j := range x.Cols {
			sum += math.Exp(x.At(r, j) - top)
		}
		return x.At(r, c) - top - math.Log(sum)
	})
}

// L2Normalize is x[r,:] / max(‖x[r,:]‖, 1e-12).
func L2Normalize(x Matrix) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 {
		sum := 0.0
		for j := range x.Cols {
			sum += x.At(r, j) * x.At(r, j)
		}
		return x.At(r, c) / math.Max(math.Sqrt(sum), 1e-12)
	})
}

// Unary applies op elementwise.
func Unary(op ops.UnaryOp, x Matrix, alpha float64) Matrix {
	return x.Map(func(v float64) float64 {
		switch op {
		case ops.ScaleOp:
			return alpha * v
		case ops.ReLUOp:
			return math.Max(v, 0)
		case ops.LeakyReLUOp:
			if v < 0 {
				return alpha * v
			}
			return v
		case ops.ELUOp:
			if v < 0 {
				return alpha * (math.Exp(v) - 1)
			}
			return v
		case ops.SigmoidOp:
			return 1 / (1 + math.Exp(-v))
		case ops.TanhOp:
			return math.Tanh(v)
		case ops.ExpOp:
			return math.Exp(v)
		case ops.GELUOp:
			return v * math.Erfc(-v/math.Sqrt2) / 2
		case ops.SqrtOp:
			if v <= alpha {
				return 0
			}
			return math.Sqrt(v)
		case ops.ReciprocalOp:
			return 1 / (v + alpha)
		}
		panic("ref: unknown unary operation")
	})
}

// GatherSrc is the source's row for each edge.
func GatherSrc(b *graphops.Block, h Matrix) Matrix {
	return fill(b.NumEdges(), h.Cols, func(e, c int) float64 {
		return h.At(int(b.Indices()[b.Indptr()[0]+int64(e)]), c)
	})
}

// GatherDst is the destination's row for each edge, h [NumDst, F].
func GatherDst(b *graphops.Block, h Matrix) Matrix {
	out := New(b.NumEdges(), h.Cols)
	e := 0
	for d := range b.NumDst {
		for range b.InDegree(d) {
			for c := range h.Cols {
				out.Set(e, c, h.At(d, c))
			}
			e++
		}
	}
	return out
}

// AggregateEdges reduces messages [E, F] by destination.
func AggregateEdges(b *graphops.Block, msg Matrix, op tensor.Op) Matrix {
	return fill(b.NumDst, msg.Cols, func(d, c int) float64 {
		n := b.InDegree(d)
		if n == 0 {
			return 0
		}
		first := int(b.Indptr()[d] - b.Indptr()[0])
		sum, top := 0.0, math.Inf(-1)
		for e := first; e < first+n; e++ {
			sum += msg.At(e, c)
			top = math.Max(top, msg.At(e, c))
		}
		switch op {
		case tensor.Sum:
			return sum
		case tensor.Mean:
			return sum / float64(n)
		case tensor.Max:
			return top
		}
		panic("ref: unknown aggregation")
	})
}

// Aggregate reduces the sources' rows by destination.
func Aggregate(b *graphops.Block, h Matrix, op tensor.Op) Matrix {
	return AggregateEdges(b, GatherSrc(b, h), op)
}

// Kept reports whether dropout keeps column col of the row with the given id: by
// the definition of the lanes, one draw at a time.
func Kept(seed uint64, id int64, epoch, step, site, col int, p float64) bool {
	s := philox.NewStream(seed, id, step, philox.C3(philox.Dropout, site, epoch))
	var word uint32
	for range col/8*4 + col%8/2 + 1 { // 4 words a block, 2 lanes a word
		word = s.Next()
	}
	lane := word & 0xffff
	if col%2 == 1 {
		lane = word >> 16
	}
	return float64(lane) >= math.Round(p*65536)
}

// Dropout is x masked by Kept and scaled by 1/(1-p), with ids[r] the id of row r.
func Dropout(x Matrix, ids []int64, seed uint64, epoch, step, site int, p float64) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 {
		if !Kept(seed, ids[r], epoch, step, site, c, p) {
			return 0
		}
		return x.At(r, c) / (1 - p)
	})
}
