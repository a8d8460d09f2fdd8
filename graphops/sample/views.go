package sample

import "math"

// View is what the tree of a seed with a time has of the graph.
type View struct {
	Seed int32
	Time int64
	// Latest is the largest time from which an edge of the tree is known (see [AsOf]). It is the smallest int64 in a tree
	// without edges.
	Latest int64
	// Edges is the number of edges of the tree, and Hidden that of the in-edges that its picks could not take, because of
	// their times: over all hops, so that a node counts at each hop that picks for it.
	Edges, Hidden int64
}

// Views returns what the batch's seeds see, in their order; nil if they have no times. For a batch with times of nodes, call
// it before Release. Cost: a pass over the edges.
func (b *Batch) Views() []View {
	if b.Times == nil {
		return nil
	}
	views := make([]View, len(b.Seeds))
	for i, v := range b.Seeds {
		views[i] = View{Seed: v, Time: b.Times[i], Latest: math.MinInt64}
	}
	var nodes []int64
	if b.owner != nil {
		nodes = b.owner.c.AsOf.NodeTimes
	}
	for hop := range b.Blocks {
		k := b.Blocks[len(b.Blocks)-1-hop]
		indptr, times := k.Indptr(), k.Times()
		for d := range k.NumDst {
			view := &views[b.Trees[d]]
			view.Edges += indptr[d+1] - indptr[d]
			if hop < len(b.hidden) {
				view.Hidden += int64(b.hidden[hop][d])
			}
			for e := indptr[d]; e < indptr[d+1]; e++ {
				if times != nil {
					view.Latest = max(view.Latest, times[e-indptr[0]])
				}
				if nodes != nil {
					view.Latest = max(view.Latest, nodes[k.DstID(d)], nodes[k.SrcID(int(k.Indices()[e]))])
				}
			}
		}
	}
	return views
}
