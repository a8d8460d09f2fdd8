package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// edgeMasks are the masks of a pass.
type edgeMasks struct {
	m    *Tensor // nil: none
	rows func(b *graphops.Block) []int32
	of   map[*graphops.Block]*Tensor
}

// MaskEdges makes the aggregations of this pass multiply the message of each edge by its mask, one of the rows of m [N,1]. rows
// returns, for each edge of a block, its row of m, or -1 for an edge without a mask; it returns nil for a block without masks. It is
// called once for each block of the graph's edges that is aggregated, also for those that a layer derives from its own
// ([graphops.Block.SelfLooped], those of relations), whose edges [graphops.Block.Pos] tells apart. Blocks without positions, which
// sum rows of pools and pairs, have no masks.
//
// A mean still divides by the number of in-edges, and the softmax of attention is that without masks. m has a gradient, if it needs
// one. Explanations of predictions use it.
func (f *Fwd) MaskEdges(m *Tensor, rows func(b *graphops.Block) []int32) {
	f.use("MaskEdges", m)
	if m.cols != 1 {
		fail("MaskEdges", "the masks are %s; there is one for an edge, [N,1]", m.shape())
	}
	one := f.Input(1, 1, []float32{1}, nil)
	f.masks = edgeMasks{f.Stack(m, one), rows, map[*graphops.Block]*Tensor{}}
}

// Unmasked computes do without the masks of [Fwd.MaskEdges]: sums that normalise messages and are none themselves.
func (f *Fwd) Unmasked(do func() *Tensor) *Tensor {
	masks := f.masks
	f.masks = edgeMasks{}
	defer func() { f.masks = masks }()
	return do()
}

// edgeMask returns the masks of a block's edges [E,1], nil if it has none.
func (f *Fwd) edgeMask(op string, b *graphops.Block) *Tensor {
	if f.masks.m == nil {
		return nil
	}
	m, ok := f.masks.of[b]
	if ok {
		return m
	}
	var rows []int32
	if b.EdgePos() != nil || b.Graph != nil {
		rows = f.masks.rows(b)
	}
	if rows != nil {
		if len(rows) != b.NumEdges() {
			fail(op, "there are masks of %d edges and the block has %d", len(rows), b.NumEdges())
		}
		at := make([]int32, len(rows))
		for e, r := range rows {
			if at[e] = r; r < 0 {
				at[e] = int32(f.masks.m.rows - 1)
			}
		}
		m = f.Gather(f.masks.m, at).SetSpace(ops.EdgeSpace(b))
	}
	f.masks.of[b] = m
	return m
}

// aggregateMasked is AggregateWeighted of messages that are multiplied by m [E,1], with weights w or nil, and also Max without them.
// Mean divides by the number of in-edges, whatever their masks are.
func (f *Fwd) aggregateMasked(b *graphops.Block, h *Tensor, w []float32, m *Tensor, op ops.Op) *Tensor {
	if op == ops.Max {
		return f.aggregateEdges(b, f.MulRows(f.GatherSrc(b, h), m), op)
	}
	if w != nil {
		m = f.Mul(m, f.Input(len(w), 1, w, ops.EdgeSpace(b)))
	}
	out := f.aggregateHeads(b, h, m)
	if op == ops.Sum {
		return out
	}
	parts, indptr := make([]float32, b.NumDst), b.Indptr()
	for d := range parts {
		parts[d] = ops.Share(ops.Mean, int(indptr[d+1]-indptr[d]))
	}
	return f.MulRows(out, f.Input(b.NumDst, 1, parts, ops.DstSpace(b)))
}

// aggregateTypedMasked is AggregateTyped of messages that are multiplied by m [E,1]: a sum with the weights shares·coef·m for each basis.
func (f *Fwd) aggregateTypedMasked(b *graphops.Block, h *Tensor, types []uint16, coef, m *Tensor, op ops.Op) *Tensor {
	if op == ops.Mean {
		shares := make([]float32, len(types))
		ops.TypedShares(shares, b, types, coef.rows, f.cfg.Threads)
		m = f.Mul(m, f.Input(len(shares), 1, shares, ops.EdgeSpace(b)))
	}
	rows := make([]int32, len(types))
	for e, t := range types {
		rows[e] = int32(t)
	}
	of := f.Gather(coef, rows).SetSpace(ops.EdgeSpace(b))
	var bases []*Tensor
	for k := range coef.cols {
		bases = append(bases, f.aggregateHeads(b, h, f.Mul(f.Cols(of, k, k+1), m)))
	}
	return f.Concat(bases...)
}
