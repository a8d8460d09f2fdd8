package ref

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
)

// AggregateHeads is Σ over in-edges e of w[e,k]·h[Indices[e],c], with k the head
// of column c: w [E,heads].
func AggregateHeads(b *graphops.Block, h, w Matrix) Matrix {
	msg := GatherSrc(b, h)
	width := h.Cols / w.Cols
	return fill(b.NumDst, h.Cols, func(d, c int) float64 {
		sum := 0.0
		first := int(b.Indptr()[d] - b.Indptr()[0])
		for e := first; e < first+b.InDegree(d); e++ {
			sum += w.At(e, c/width) * msg.At(e, c)
		}
		return sum
	})
}

// EdgeHeadDot is Σ over the columns c of head k of q[d,c]·h[Indices[e],c].
func EdgeHeadDot(b *graphops.Block, q, h Matrix, heads int) Matrix {
	dst, src := GatherDst(b, q), GatherSrc(b, h)
	width := h.Cols / heads
	return fill(src.Rows, heads, func(e, k int) float64 {
		sum := 0.0
		for c := k * width; c < (k+1)*width; c++ {
			sum += dst.At(e, c) * src.At(e, c)
		}
		return sum
	})
}

// EdgeSoftmax is the softmax of x [E,K] over the in-edges of each destination.
func EdgeSoftmax(b *graphops.Block, x Matrix) Matrix {
	out := New(x.Rows, x.Cols)
	for d := range b.NumDst {
		first := int(b.Indptr()[d] - b.Indptr()[0])
		for k := range x.Cols {
			sum := 0.0
			for e := first; e < first+b.InDegree(d); e++ {
				sum += math.Exp(x.At(e, k))
			}
			for e := first; e < first+b.InDegree(d); e++ {
				out.Set(e, k, math.Exp(x.At(e, k))/sum)
			}
		}
	}
	return out
}

// HeadMean is the mean over heads that lie side by side.
func HeadMean(x Matrix, heads int) Matrix {
	width := x.Cols / heads
	return fill(x.Rows, width, func(r, c int) float64 {
		sum := 0.0
		for k := range heads {
			sum += x.At(r, k*width+c)
		}
		return sum / float64(heads)
	})
}

// HeadDot is Σ over the columns c of head k of x[r,c]·a[c].
func HeadDot(x, a Matrix, heads int) Matrix {
	width := x.Cols / heads
	return fill(x.Rows, heads, func(r, k int) float64 {
		sum := 0.0
		for c := k * width; c < (k+1)*width; c++ {
			sum += x.At(r, c) * a.Data[c]
		}
		return sum
	})
}

// RowNorm is each row less its mean over the root of its variance + eps.
func RowNorm(x Matrix, eps float64) Matrix {
	return fill(x.Rows, x.Cols, func(r, c int) float64 {
		mean, variance := 0.0, 0.0
		for j := range x.Cols {
			mean += x.At(r, j) / float64(x.Cols)
		}
		for j := range x.Cols {
			variance += (x.At(r, j) - mean) * (x.At(r, j) - mean) / float64(x.Cols)
		}
		return (x.At(r, c) - mean) / math.Sqrt(variance+eps)
	})
}

// ColNorm is RowNorm of columns.
func ColNorm(x Matrix, eps float64) Matrix { return RowNorm(x.T(), eps).T() }

// MulCols is w[c]·x[r,c].
func MulCols(x, w Matrix) Matrix { return MulRows(x.T(), w).T() }

// AggregateTyped is Σ over in-edges e of d of coef[types[e],k]·h[Indices[e],c], with mean divided by the number
// of d's in-edges of the type of e; the bases k lie side by side.
func AggregateTyped(b *graphops.Block, h Matrix, types []uint16, coef Matrix, mean bool) Matrix {
	msg := GatherSrc(b, h)
	return fill(b.NumDst, coef.Cols*h.Cols, func(d, at int) float64 {
		k, c := at/h.Cols, at%h.Cols
		first := int(b.Indptr()[d] - b.Indptr()[0])
		sum := 0.0
		for e := first; e < first+b.InDegree(d); e++ {
			n := 0
			for o := first; o < first+b.InDegree(d); o++ {
				if types[o] == types[e] {
					n++
				}
			}
			v := coef.At(int(types[e]), k) * msg.At(e, c)
			if mean {
				v /= float64(n)
			}
			sum += v
		}
		return sum
	})
}

// Stack puts rows one under the other.
func Stack(xs ...Matrix) Matrix {
	out := Matrix{Cols: xs[0].Cols}
	for _, x := range xs {
		out.Rows += x.Rows
		out.Data = append(out.Data, x.Data...)
	}
	return out
}
