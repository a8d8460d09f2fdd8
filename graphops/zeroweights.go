package graphops

import (
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/parallel"
)

// zeroWeights holds the result of WithoutZeroWeights for a graph.
type zeroWeights struct {
	mu    sync.Mutex
	rest  *Graph // nil: not known
	edges int64
}

// WithoutZeroWeights returns the graph without its edges of weight 0, and their number: g itself if it has none. Such an edge
// is masked: samplers and walks never take it, at any fanout, and no layer counts it as a neighbour. The other edges keep
// their order, weights, features, times and types; their positions are those in the result.
//
// Cost: two passes over the edges if there are such edges, else one over the weights. A graph made by WithEdgeWeights, as
// those of FromEdgesWith and of datasets are, stores the result.
func (g *Graph) WithoutZeroWeights() (rest *Graph, zeros int64) {
	if g.EdgeWeights == nil {
		return g, 0
	}
	z := g.zeros
	if z == nil {
		z = &zeroWeights{}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.rest == nil {
		z.rest, z.edges = g.withoutZeroWeights()
	}
	return z.rest, z.edges
}

func (g *Graph) withoutZeroWeights() (*Graph, int64) {
	var n atomic.Int64
	parallel.For(0, len(g.EdgeWeights), edgeGrain, func(lo, hi int) {
		some := int64(0)
		for _, w := range g.EdgeWeights[lo:hi] {
			if w == 0 {
				some++
			}
		}
		n.Add(some)
	})
	zeros := n.Load()
	if zeros == 0 {
		return g, 0
	}
	kept := make([]int64, 0, int64(len(g.Indices))-zeros)
	r := &Graph{Indptr: make([]int64, len(g.Indptr)), Indices: make([]int32, 0, cap(kept))}
	for v := range g.NumNodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.EdgeWeights[e] != 0 {
				kept, r.Indices = append(kept, e), append(r.Indices, g.Indices[e])
			}
		}
		r.Indptr[v+1] = int64(len(kept))
	}
	return r.withDataOf(g, kept, 0), zeros
}
