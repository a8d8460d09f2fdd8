package ops

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
)

// weightAt returns w[i] of weights [E,heads], or 1 if there are none.
func weightAt(w []float32, i int) float32 {
	if w == nil {
		return 1
	}
	return w[i]
}

// weights returns a buffer's memory, or nil if it has no elements: all weights 1.
func weights(w Buffer) []float32 {
	if w.N == 0 {
		return nil
	}
	return w.Host
}

func (c *Processor) SpMMWeighted(out Buffer, b *graphops.Block, w Buffer, heads int, h Buffer, cols int, acc bool) {
	c.sumWeighted(out.Host, b, weights(w), heads, &simd.Rows{Data: h.Host, Stride: cols}, cols, acc)
}

// sumWeighted is SpMMWeighted of the rows of a table.
func (c *Processor) sumWeighted(out []float32, b *graphops.Block, wts []float32, heads int, t *simd.Rows, cols int, acc bool) {
	n, grain := cached(b.Indptr(), b.NumDst, cols, t.Len())
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids := destinations(b, t, cols, lo, hi)
		o, first := out[lo*cols:hi*cols], int(b.Indptr()[lo]-b.Indptr()[0])
		switch {
		case wts == nil:
			simd.SumSegments(o, t, cols, b.Indptr()[lo:hi+1], ids, false, acc)
		case heads == 1:
			simd.WeightedSumSegments(o, t, cols, b.Indptr()[lo:hi+1], ids, wts[first:], nil, acc)
		default:
			for d := lo; d < hi; d++ {
				deg := b.InDegree(d)
				sumHeads(out[d*cols:(d+1)*cols], t, ids, deg, wts[int(b.Indptr()[d]-b.Indptr()[0])*heads:], heads, nil, acc)
				ids = ids[deg:]
			}
		}
	})
}

// sumHeads is the weighted sum of n rows with weights [.,heads]; each head's weights apply to its
// share of the columns. The rows are consecutive or, if at is not nil, those that at names.
func sumHeads(o []float32, t *simd.Rows, ids []int32, n int, w []float32, heads int, at []int32, acc bool) {
	width := len(o) / heads
	for k := range heads {
		head := simd.Rows{Data: t.Data[min(k*width, len(t.Data)):], Stride: t.Stride}
		simd.WeightedSumRows(o[k*width:(k+1)*width], &head, ids, n, w[min(k, len(w)):], heads, at, acc)
	}
}

// scatterEdges is the number of edges up to which one thread adds the gradients of sources faster
// than it can group the edges by source; the sums are the same.
const scatterEdges = 1 << 17

// Scatters reports whether SpMMWeightedGrad goes along the edges in their order, unless the block has a transpose.
func Scatters(b *graphops.Block, heads int, acc bool) bool {
	return heads == 1 && !acc && b.NumEdges() <= scatterEdges
}

func (c *Processor) SpMMWeightedGrad(dh, dOut, w Buffer, heads int, b *graphops.Block, cols int, acc bool) {
	wts := weights(w)
	if Scatters(b, heads, acc) && !b.HasTransposed() {
		ids := b.Indices()[b.Indptr()[0]:b.Indptr()[b.NumDst]]
		checkIDs(&simd.Rows{Data: dh.Host, Stride: cols}, ids, cols)
		clear(dh.Host[:b.NumSrc*cols])
		simd.ScatterSegments(dh.Host, dOut.Host[:b.NumDst*cols], cols, b.Indptr(), ids, wts)
		return
	}
	t := b.Transposed()
	g := &simd.Rows{Data: dOut.Host, Stride: cols}
	n, grain := cached(t.Indptr, b.NumSrc, cols, dOut.N)
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids, edges := sources(t, b.NumSrc, g, cols, lo, hi)
		o := dh.Host[lo*cols : hi*cols]
		switch {
		case wts == nil:
			simd.SumSegments(o, g, cols, t.Indptr[lo:hi+1], ids, false, acc)
		case heads == 1:
			simd.WeightedSumSegments(o, g, cols, t.Indptr[lo:hi+1], ids, wts, edges, acc)
		default:
			for s := lo; s < hi; s++ {
				deg := int(t.Indptr[s+1] - t.Indptr[s])
				sumHeads(dh.Host[s*cols:(s+1)*cols], g, ids, deg, wts, heads, edges, acc)
				ids, edges = ids[deg:], edges[deg:]
			}
		}
	})
}

func (c *Processor) EdgeDot(dw Buffer, b *graphops.Block, dOut, h Buffer, heads, cols int, acc bool) {
	width := cols / heads
	t := &simd.Rows{Data: h.Host, Stride: cols}
	n, grain := segments(b.Indptr(), b.NumDst, cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids := destinations(b, t, cols, lo, hi)
		for d := lo; d < hi; d++ {
			g, deg := dOut.Host[d*cols:(d+1)*cols], b.InDegree(d)
			o := dw.Host[int(b.Indptr()[d]-b.Indptr()[0])*heads:][:deg*heads]
			for k := range min(heads, len(o)) {
				head := simd.Rows{Data: t.Data[k*width:], Stride: cols}
				edgeDots(o[k:], heads, g[k*width:(k+1)*width], &head, ids, deg, acc)
			}
			ids = ids[deg:]
		}
	})
}

// edgeDots is DotRows, added to out with acc.
func edgeDots(out []float32, step int, g []float32, t *simd.Rows, ids []int32, n int, acc bool) {
	if !acc {
		simd.DotRows(out, step, g, t, ids, n)
		return
	}
	var some [64]float32
	for lo := 0; lo < n; lo += len(some) {
		m := min(len(some), n-lo)
		simd.DotRows(some[:], 1, g, t, ids[lo:], m)
		for i, v := range some[:m] {
			out[(lo+i)*step] += v
		}
	}
}

// EdgeSoftmax subtracts the maximum of each destination, computes the exponentials of a whole chunk
// at once, and divides them by their sums.
func (c *Processor) EdgeSoftmax(y Buffer, b *graphops.Block, x Buffer, cols int) {
	first := b.Indptr()[0]
	n, grain := segments(b.Indptr(), b.NumDst, 8*cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
		for d := lo; d < hi; d++ {
			from, to := int(b.Indptr()[d]-first)*cols, int(b.Indptr()[d+1]-first)*cols
			for k := range cols {
				top := float32(math.Inf(-1))
				for e := from + k; e < to; e += cols {
					top = max(top, x.Host[e])
				}
				for e := from + k; e < to; e += cols {
					y.Host[e] = x.Host[e] - top
				}
			}
		}
		all := y.Host[int(b.Indptr()[lo]-first)*cols : int(b.Indptr()[hi]-first)*cols]
		simd.Exp(all, all, 0)
		for d := lo; d < hi; d++ {
			from, to := int(b.Indptr()[d]-first)*cols, int(b.Indptr()[d+1]-first)*cols
			for k := range cols {
				sum := 0.0
				for e := from + k; e < to; e += cols {
					sum += float64(y.Host[e])
				}
				inv := 1 / sum
				for e := from + k; e < to; e += cols {
					y.Host[e] = float32(float64(y.Host[e]) * inv)
				}
			}
		}
	})
}

func (c *Processor) EdgeSoftmaxGrad(dx, dy, y Buffer, b *graphops.Block, cols int, acc bool) {
	first := b.Indptr()[0]
	n, grain := segments(b.Indptr(), b.NumDst, 8*cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
		for d := lo; d < hi; d++ {
			from, to := int(b.Indptr()[d]-first), int(b.Indptr()[d+1]-first)
			for k := range cols {
				along := 0.0
				for e := from; e < to; e++ {
					along += float64(dy.Host[e*cols+k]) * float64(y.Host[e*cols+k])
				}
				for e := from; e < to; e++ {
					v := float32(float64(y.Host[e*cols+k]) * (float64(dy.Host[e*cols+k]) - along))
					if acc {
						v += dx.Host[e*cols+k]
					}
					dx.Host[e*cols+k] = v
				}
			}
		}
	})
}

func (c *Processor) SparseDense(out Buffer, b *graphops.Block, values Buffer) {
	indptr, indices := b.Indptr(), b.Indices()
	v, first, cols := weights(values), indptr[0], b.NumSrc
	c.eachRow(b.NumDst, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o := out.Host[r*cols : (r+1)*cols]
			clear(o)
			for e := indptr[r]; e < indptr[r+1]; e++ {
				o[indices[e]] = weightAt(v, int(e-first))
			}
		}
	})
}

// SparseDropout draws the Philox blocks of many elements together; in a matrix with few non-zeros,
// elements are in different blocks.
func (c *Processor) SparseDropout(out Buffer, b *graphops.Block, values Buffer, k DropoutKey) {
	v, first := weights(values), b.Indptr()[0]
	n, grain := segments(b.Indptr(), b.NumDst, 8)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
		var c0, c1 [keepBatch]uint32
		var keep [keepBatch]byte
		filled, from := 0, b.Indptr()[lo]
		flush := func() {
			simd.KeepBitsAt(keep[:filled], k.Seed, c0[:filled], c1[:filled], uint32(k.Step), k.C3, k.Threshold)
			var x []float32
			if v != nil {
				x = v[from-first:][:filled]
			}
			simd.KeepColumns(out.Host[from-first:][:filled], x, b.Indices()[from:][:filled], keep[:filled], k.Scale)
			from += int64(filled)
			filled = 0
		}
		for r := lo; r < hi; r++ {
			ctr := philox.Counter(k.Space.ID(r), k.Step, k.C3)
			for cols := b.Indices()[b.Indptr()[r]:b.Indptr()[r+1]]; len(cols) > 0; {
				n := min(len(cols), keepBatch-filled)
				x0, x1 := c0[filled:][:n], c1[filled:][:n]
				for i, col := range cols[:n] {
					x0[i], x1[i] = ctr[0], ctr[1]|uint32(col)/8
				}
				if filled += n; filled == keepBatch {
					flush()
				}
				cols = cols[n:]
			}
		}
		flush()
	})
}

func (c *Processor) Transpose(out, x Buffer, rows, cols int, acc bool) {
	c.transpose(out.Host, x.Host, rows, cols, acc)
}

func (c *Processor) ColScale(out, x, w Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			simd.Times(out.Host[r*cols:(r+1)*cols], w.Host[:cols], x.Host[r*cols:(r+1)*cols], acc)
		}
	})
}

func (c *Processor) ColDot(out, x, y Buffer, rows, cols int, acc bool) {
	grain := sumRows(rows, cols)
	parts := c.borrow(parallel.Chunks(rows, grain) * cols)
	defer c.giveBack(parts)
	c.loop(rows, grain, func(lo, hi int) {
		sum := parts[lo/grain*cols:][:cols]
		clear(sum)
		for r := lo; r < hi; r++ {
			simd.Times(sum, x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols], true)
		}
	})
	c.treeSum(out.Host, parts, cols, acc)
}

func (c *Processor) RowNorm(y, inv, x Buffer, rows, cols int, eps float32) {
	c.eachRow(rows, cols, func(lo, hi int) {
		simd.NormRows(y.Host[lo*cols:hi*cols], inv.Host[lo:hi], x.Host[lo*cols:hi*cols], cols, eps)
	})
}

func (c *Processor) ColMeans(mean, minus, sum Buffer, n int) {
	for i, v := range sum.Host {
		mean.Host[i] = v / float32(n)
		minus.Host[i] = -mean.Host[i]
	}
}

func (c *Processor) ColInverses(variance, inv, sum Buffer, n int, eps float64) {
	for i, v := range sum.Host {
		variance.Host[i] = v / float32(n)
		inv.Host[i] = float32(1 / math.Sqrt(float64(variance.Host[i])+eps))
	}
}

func (c *Processor) Track(y, x Buffer, keep, share float64) {
	for i, v := range x.Host {
		y.Host[i] = float32(keep*float64(y.Host[i]) + share*float64(v))
	}
}

func (c *Processor) RowNormGrad(dx, dy, y, inv Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		at, end := lo*cols, hi*cols
		simd.NormRowsGrad(dx.Host[at:end], dy.Host[at:end], y.Host[at:end], inv.Host[lo:hi], cols, acc)
	})
}
