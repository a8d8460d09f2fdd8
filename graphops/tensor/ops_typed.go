package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// AggregateTyped is message passing over edges of several types, with a coefficient for each type and basis:
//
//	out[d, k·F+c] = Σ over d's in-edges e of coef[type of e, k] · h[Indices[e],c]
//
// h [NumSrc,F], coef [types,K], out [NumDst,K·F] in the space of the destinations: the K sums of a destination
// lie side by side. types [E] are the types of the edges, counted from 0 as in Block.Weights. With Mean each
// edge is divided by the number of d's in-edges of its type; Max is not supported. A product of out with K
// stacked matrices is then the layer of R-GCN with K bases, whose matrix for a type is a sum of the K ones.
//
// No array of size [E,F] is made, nor a matrix for a type. Sums run over in-edges (for the gradient in h, over
// each source's out-edges) in ascending order; the gradient in coef is summed in fixed chunks, combined in a
// fixed tree. Cost: 2·E·K·F flops, of which the reads of rows, E·F·4 bytes, miss caches once; and the same for
// each gradient.
func (f *Fwd) AggregateTyped(b *graphops.Block, h *Tensor, types []uint16, coef *Tensor, op ops.Op) *Tensor {
	const name = "AggregateTyped"
	f.check(name, h)
	f.use(name, coef)
	checkSrc(name, b, h)
	c, k, edges := h.cols, coef.cols, b.NumEdges()
	switch {
	case op != ops.Sum && op != ops.Mean:
		fail(name, "aggregation %v does not support types; use Sum or Mean", op)
	case len(types) != edges:
		fail(name, "there are %d types and the block has %d edges: each edge needs a type", len(types), edges)
	case int64(b.NumDst)*int64(k) > 1<<31-1:
		fail(name, "%d destinations with %d bases are more than 2^31-1 rows; use smaller batches", b.NumDst, k)
	}
	for e, r := range types {
		if int(r) >= coef.rows {
			fail(name, "edge %d has type %d, but the coefficients are %s [types,bases]: types are below %d", e, r, coef.shape(), coef.rows)
		}
	}
	if m := f.edgeMask(name, b); m != nil {
		return f.aggregateTypedMasked(b, h, types, coef, m, op)
	}
	kinds := ops.Kinds{Types: types, N: coef.rows}
	if _, dry := h.buf.Dev.(absent); op == ops.Mean && edges > 0 && !dry {
		shares := make([]float32, edges)
		ops.TypedShares(shares, b, types, coef.rows, f.cfg.Threads)
		kinds.Shares = f.wrap(shares)
	}
	out := f.result(b.NumDst, k*c, ops.DstSpace(b))
	if r := h.rowsOf; r != nil && !coef.need {
		f.be.SpMMTyped(out.buf, b, kinds, coef.buf, k, r.table, &r.rows, c)
		return out
	}
	f.dense(h)
	f.be.SpMMTyped(out.buf, b, kinds, coef.buf, k, h.buf, nil, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.SpMMTypedGrad(dh, d, b, kinds, coef.buf, k, c, acc) })
		f.give(coef, func(dc ops.Buffer, acc bool) { f.be.TypedDot(dc, b, kinds, d, h.buf, k, c, acc) })
	}, h, coef)
}
