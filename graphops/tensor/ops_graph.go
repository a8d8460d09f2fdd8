package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Dst returns the rows of a block's destinations, h[DstStart : DstStart+NumDst], of a matrix h
// [NumSrc,F] with one row per source. It makes no copy.
func (f *Fwd) Dst(b *graphops.Block, h *Tensor) *Tensor {
	f.check("Dst", h)
	if b.Apart() {
		fail("Dst", "the block's destinations are no sources (graphops.Groups and Spread make such blocks), so they have no rows of their own")
	}
	checkSrc("Dst", b, h)
	return f.view(h, b.DstStart, b.DstStart+b.NumDst, ops.DstSpace(b))
}

// Aggregate is the message passing of a graph layer without a message function:
//
//	out[d,:] = op over d's in-edges e of h[Indices[e],:]
//
// h [NumSrc,F], out [NumDst,F] in the space of the destinations. A destination without in-edges
// gets zeros. Sums run over in-edges in ascending order; the gradient sums over each source's
// out-edges in ascending order. For sources of a cooperative batch (see [Fwd.Sources]), in-edges with
// sources of one rank follow one another. Max's gradient goes only to the first of equal maxima; if a message
// is NaN, so is the maximum.
//
// No array of size [E,F] is made. Cost: E·F additions and E·F·4 bytes read, and the same for the
// gradient, which is computed only if h needs it.
func (f *Fwd) Aggregate(b *graphops.Block, h *Tensor, op ops.Op) *Tensor {
	f.check("Aggregate", h)
	checkOp("Aggregate", op)
	checkSrc("Aggregate", b, h)
	if m := f.edgeMask("Aggregate", b); m != nil {
		return f.aggregateMasked(b, h, nil, m, op)
	}
	c := h.cols
	if r := h.rowsOf; r != nil && op != ops.Max {
		out := f.result(b.NumDst, c, ops.DstSpace(b))
		f.be.SpMMRows(op, out.buf, b, ops.Buffer{}, r.table, r.rows, c)
		return out
	}
	if s := h.halo; s != nil && s.b == b && op != ops.Max {
		return f.aggregateAtOwners(s, op)
	}
	f.dense(h)
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	arg := f.argBuffer(op, h, out)
	f.be.SpMM(op, out.buf, arg, b, h.buf, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.SpMMGrad(op, dh, d, arg, b, c, acc) })
	}, h)
}

// GatherSrc returns, for each edge, the row of its source: h [NumSrc,F], out [E,F] in the space of
// the block's edges. It is the first half of a custom message function; [Fwd.AggregateEdges] is the
// second.
func (f *Fwd) GatherSrc(b *graphops.Block, h *Tensor) *Tensor {
	f.use("GatherSrc", h)
	checkSrc("GatherSrc", b, h)
	c := h.cols
	out := f.result(b.NumEdges(), c, ops.EdgeSpace(b))
	f.be.GatherSrc(out.buf, b, h.buf, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.ScatterSrc(dh, b, d, c, acc) })
	}, h)
}

// GatherDst returns, for each edge, the row of its destination: out [E,F] in the space of the
// block's edges. h has a row for every source, [NumSrc,F], or for every destination, [NumDst,F].
func (f *Fwd) GatherDst(b *graphops.Block, h *Tensor) *Tensor {
	f.use("GatherDst", h)
	if h.rows != b.NumDst {
		if h.rows != b.NumSrc {
			fail("GatherDst", "h is %s and the block has %d sources and %d destinations: h needs one row per source or one row per destination", h.shape(), b.NumSrc, b.NumDst)
		}
		h = f.Dst(b, h)
	}
	c := h.cols
	out := f.result(b.NumEdges(), c, ops.EdgeSpace(b))
	f.be.SegmentGrad(ops.Sum, out.buf, h.buf, ops.Buffer{}, b, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.Segment(ops.Sum, dh, ops.Buffer{}, b, d, c, acc) })
	}, h)
}

// AggregateEdges reduces messages [E,F] to [NumDst,F]: row e of msg is the
// message of the block's edge Indptr[0]+e. Otherwise it is as Aggregate.
func (f *Fwd) AggregateEdges(b *graphops.Block, msg *Tensor, op ops.Op) *Tensor {
	f.use("AggregateEdges", msg)
	checkOp("AggregateEdges", op)
	if msg.rows != b.NumEdges() {
		fail("AggregateEdges", "the messages are %s and the block has %d edges: they need one row per edge", msg.shape(), b.NumEdges())
	}
	if m := f.edgeMask("AggregateEdges", b); m != nil {
		msg = f.MulRows(msg, m)
	}
	return f.aggregateEdges(b, msg, op)
}

func (f *Fwd) aggregateEdges(b *graphops.Block, msg *Tensor, op ops.Op) *Tensor {
	c := msg.cols
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	arg := f.argBuffer(op, msg, out)
	f.be.Segment(op, out.buf, arg, b, msg.buf, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(msg, func(dm ops.Buffer, acc bool) { f.be.SegmentGrad(op, dm, d, arg, b, c, acc) })
	}, msg)
}

// Propagate is message passing with a custom message function:
//
//	out[d,:] = op over d's in-edges e of msg(h[source of e,:], h[d,:])
//
// h [NumSrc,F]. msg receives src and dst, both [E,F] in the space of the edges, and returns [E,G];
// out is [NumDst,G]. If the message is the source's row alone, Aggregate is cheaper: it makes no
// array of size [E,F].
func (f *Fwd) Propagate(b *graphops.Block, h *Tensor, msg func(f *Fwd, src, dst *Tensor) *Tensor, op ops.Op) *Tensor {
	return f.AggregateEdges(b, msg(f, f.GatherSrc(b, h), f.GatherDst(b, h)), op)
}

// argBuffer is where Max records the edges that its gradient goes to; it is empty if not needed.
func (f *Fwd) argBuffer(op ops.Op, in, out *Tensor) ops.Buffer {
	if op != ops.Max || !in.need {
		return ops.Buffer{}
	}
	n := out.rows * out.cols
	return f.mem.get(n).buf(n)
}

func checkSrc(op string, b *graphops.Block, h *Tensor) {
	if h.rows != b.NumSrc {
		fail(op, "h is %s and the block has %d sources: h needs one row per source", h.shape(), b.NumSrc)
	}
}

func checkOp(name string, op ops.Op) {
	if op < ops.Mean || op > ops.Max {
		fail(name, "unknown aggregation %d; use Mean, Sum or Max", op)
	}
}
