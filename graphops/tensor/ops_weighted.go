package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// AggregateWeighted is Aggregate with a constant weight for each edge:
//
//	out[d,:] = Σ over d's in-edges e of w[e]·h[Indices[e],:]
//
// w [E] is indexed by the edge's number from 0 (its position less the block's Indptr[0]), as
// Block.Weights is; nil means 1 for each. With Mean each sum is divided by the number of in-edges
// (not by their weight). Max is not supported. An edge of weight 0 adds nothing, whatever h is. The
// order of sums, the cost and the gradient in h are as in Aggregate; w has no gradient, and must
// not change until Backward is over.
func (f *Fwd) AggregateWeighted(b *graphops.Block, h *Tensor, w []float32, op ops.Op) *Tensor {
	const name = "AggregateWeighted"
	f.check(name, h)
	checkSrc(name, b, h)
	if op != ops.Sum && op != ops.Mean {
		fail(name, "aggregation %v does not support weights; use Sum or Mean", op)
	}
	if w == nil {
		return f.Aggregate(b, h, op)
	}
	if len(w) != b.NumEdges() {
		fail(name, "there are %d weights and the block has %d edges", len(w), b.NumEdges())
	}
	if m := f.edgeMask(name, b); m != nil {
		return f.aggregateMasked(b, h, w, m, op)
	}
	if op == ops.Mean {
		mean := make([]float32, len(w))
		indptr := b.Indptr()
		first := indptr[0]
		for d := range b.NumDst {
			n := float32(indptr[d+1] - indptr[d])
			for e := indptr[d] - first; e < indptr[d+1]-first; e++ {
				mean[e] = w[e] / n
			}
		}
		w = mean
	}
	c := h.cols
	weights := f.wrap(w)
	if r := h.rowsOf; r != nil && len(w) > 0 {
		out := f.result(b.NumDst, c, ops.DstSpace(b))
		f.be.SpMMRows(ops.Sum, out.buf, b, weights, r.table, r.rows, c)
		return out
	}
	f.dense(h)
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	f.be.SpMMWeighted(out.buf, b, weights, 1, h.buf, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.SpMMWeightedGrad(dh, d, weights, 1, b, c, acc) })
	}, h)
}

// AggregateHeads is the aggregation of attention: with w [E,heads],
//
//	out[d,c] = Σ over d's in-edges e of w[e,k]·h[Indices[e],c],  k = c/(F/heads)
//
// h [NumSrc,F] holds the heads in consecutive columns, F/heads each; out is [NumDst,F] in the space
// of the destinations. No array of size [E,F] is made: the gradient in h is the aggregation over
// reversed edges, the gradient in w a product of rows for each edge and head. Sums run over
// in-edges (for h, over each source's out-edges) in ascending order. An edge of weight 0 adds
// nothing. Cost: 2·E·F flops, and the same for each gradient.
func (f *Fwd) AggregateHeads(b *graphops.Block, h, w *Tensor) *Tensor {
	const name = "AggregateHeads"
	f.use(name, h, w)
	checkSrc(name, b, h)
	if w.rows != b.NumEdges() {
		fail(name, "the weights are %s and the block has %d edges: they need one row per edge", w.shape(), b.NumEdges())
	}
	heads, c := w.cols, h.cols
	if heads < 1 || c%heads != 0 {
		fail(name, "h is %s and the weights are %s [edges,heads]: the heads must divide h's columns", h.shape(), w.shape())
	}
	if m := f.edgeMask(name, b); m != nil {
		w = f.MulRows(w, m)
	}
	return f.aggregateHeads(b, h, w)
}

func (f *Fwd) aggregateHeads(b *graphops.Block, h, w *Tensor) *Tensor {
	f.dense(h)
	heads, c := w.cols, h.cols
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	if b.NumEdges() == 0 {
		f.be.Zero(out.buf)
	} else {
		f.be.SpMMWeighted(out.buf, b, w.buf, heads, h.buf, c, false)
	}
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.SpMMWeightedGrad(dh, d, w.buf, heads, b, c, acc) })
		f.give(w, func(dw ops.Buffer, acc bool) { f.be.EdgeDot(dw, b, d, h.buf, heads, c, acc) })
	}, h, w)
}

// EdgeHeadDot is, for each edge and head, the product of a row of its destination with one of its
// source:
//
//	out[e,k] = Σ over the columns c of head k of q[d,c]·h[Indices[e],c]
//
// q [NumDst,F] and h [NumSrc,F] hold the heads in consecutive columns, F/heads each; out is [E,heads]
// in the space of the block's edges. No array of size [E,F] is made. The gradients are aggregations
// with weights, as AggregateHeads is; each sums over edges in ascending order. Cost: 2·E·F flops, and
// the same for each gradient.
func (f *Fwd) EdgeHeadDot(b *graphops.Block, q, h *Tensor, heads int) *Tensor {
	const name = "EdgeHeadDot"
	f.use(name, q, h)
	checkSrc(name, b, h)
	c := h.cols
	switch {
	case q.rows != b.NumDst || q.cols != c:
		fail(name, "q is %s, h is %s and the block has %d destinations: q needs one row per destination and h's columns", q.shape(), h.shape(), b.NumDst)
	case heads < 1 || c%heads != 0:
		fail(name, "h is %s; its columns are not divisible by %d heads", h.shape(), heads)
	}
	out := f.result(b.NumEdges(), heads, ops.EdgeSpace(b))
	f.be.EdgeDot(out.buf, b, q.buf, h.buf, heads, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(q, func(dq ops.Buffer, acc bool) {
			if b.NumEdges() > 0 { // without elements, weights mean 1 for each
				f.be.SpMMWeighted(dq, b, d, heads, h.buf, c, acc)
			} else if !acc {
				f.be.Zero(dq)
			}
		})
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.SpMMWeightedGrad(dh, q.buf, d, heads, b, c, acc) })
	}, q, h)
}

// EdgeSoftmax is, for each destination and column, the softmax of x [E,K] over the destination's
// in-edges, computed relative to their maximum so that it does not overflow:
//
//	out[e,k] = e^x[e,k] / Σ over the in-edges j of e's destination of e^x[j,k]
//
// The space is that of the block's edges.
func (f *Fwd) EdgeSoftmax(b *graphops.Block, x *Tensor) *Tensor {
	f.use("EdgeSoftmax", x)
	if x.rows != b.NumEdges() {
		fail("EdgeSoftmax", "x is %s and the block has %d edges: x needs one row per edge", x.shape(), b.NumEdges())
	}
	c := x.cols
	out := f.result(x.rows, c, ops.EdgeSpace(b))
	f.be.EdgeSoftmax(out.buf, b, x.buf, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.EdgeSoftmaxGrad(dx, d, out.buf, b, c, acc) })
	}, x)
}

// HeadMean is the mean over heads: x [N, heads·F] holds them in consecutive columns, out is [N,F].
// The rows keep their space.
func (f *Fwd) HeadMean(x *Tensor, heads int) *Tensor {
	f.use("HeadMean", x)
	if heads < 1 || x.cols%heads != 0 {
		fail("HeadMean", "x is %s; its columns are not divisible by %d heads", x.shape(), heads)
	}
	if heads == 1 {
		return x
	}
	n, c := x.rows, x.cols/heads
	out := f.result(n, c, x.sp)
	sum := f.mem.get(n * c)
	for k := range heads {
		f.be.CopyCols(sum.buf(n*c), c, 0, x.buf, x.cols, k*c, n, c, k > 0)
	}
	inv := 1 / float32(heads)
	f.be.Unary(ops.ScaleOp, out.buf, sum.buf(n*c), inv, false)
	f.mem.put(sum)
	return f.record(out, func(d ops.Buffer) {
		share := f.mem.get(n * c)
		f.be.Unary(ops.ScaleOp, share.buf(n*c), d, inv, false)
		f.give(x, func(dx ops.Buffer, acc bool) {
			for k := range heads {
				f.be.CopyCols(dx, x.cols, k*c, share.buf(n*c), c, 0, n, c, acc)
			}
		})
		f.mem.put(share)
	}, x)
}

// HeadDot is out[r,k] = Σ over the columns c of head k of x[r,c]·a[c]: x [N, heads·F] holds the
// heads in consecutive columns, a is [1, heads·F], out [N,heads]. The rows keep x's space. It is a
// matrix product with a as a block matrix.
func (f *Fwd) HeadDot(x, a *Tensor, heads int) *Tensor {
	f.use("HeadDot", x, a)
	if heads < 1 || x.cols%heads != 0 || a.rows != 1 || a.cols != x.cols {
		fail("HeadDot", "x is %s and a is %s with %d heads: a must be [1,%d], divisible by the heads", x.shape(), a.shape(), heads, x.cols)
	}
	width := x.cols / heads
	blocks := f.result(x.cols, heads, nil)
	f.be.Zero(blocks.buf)
	// Head k's part of a is column k, in the rows of that head.
	head := func(one, all ops.Buffer, k int) (of, in ops.Buffer) {
		lo, hi := k*width, (k+1)*width
		return one.Slice(lo, hi), all.Slice(lo*heads, hi*heads)
	}
	for k := range heads {
		of, in := head(a.buf, blocks.buf, k)
		f.be.CopyCols(in, heads, k, of, 1, 0, width, 1, false)
	}
	f.record(blocks, func(d ops.Buffer) {
		f.give(a, func(da ops.Buffer, acc bool) {
			for k := range heads {
				of, in := head(da, d, k)
				f.be.CopyCols(of, 1, 0, in, heads, k, width, 1, acc)
			}
		})
	}, a)
	return f.MatMul(x, blocks)
}
