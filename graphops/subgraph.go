package graphops

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Subgraph returns the graph of the nodes ids, which must ascend: its node i is node ids[i], and its
// edges are those between these nodes, with their weights, features, times and types. Its schema has
// g's types and relations, and the numbers of nodes that are left. It shares no memory with g. It panics if ids do not ascend or name a node that does not exist. Cost: one pass over the
// edges of the nodes, and 4 bytes per node of g.
func (g *Graph) Subgraph(ids []int32) *Graph {
	number := make([]int32, g.NumNodes()) // the new number plus 1; 0 means left out
	for i, v := range ids {
		if uint(v) >= uint(len(number)) || i > 0 && v <= ids[i-1] {
			panic(fmt.Sprintf("graphops: Subgraph: entry %d of the nodes is %d; they must ascend, from 0 to %d", i, v, len(number)-1))
		}
		number[v] = int32(i) + 1
	}
	s := &Graph{Indptr: make([]int64, 1, len(ids)+1)}
	var kept []int64 // positions of the edges
	for _, v := range ids {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := number[g.Indices[e]]; u > 0 {
				s.Indices, kept = append(s.Indices, u-1), append(kept, e)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	s = s.withDataOf(g, kept, 0)
	if g.Schema != nil {
		s.Schema = g.Schema.Clone()
		for t := range s.Schema.Nodes {
			lo, hi := g.Schema.Range(t)
			first, _ := slices.BinarySearch(ids, int32(lo))
			last, _ := slices.BinarySearch(ids, int32(hi))
			s.Schema.Nodes[t].Count = last - first
		}
	}
	return s
}

// withDataOf returns r with the weights, features, times and types that g's edges at these positions have.
func (r *Graph) withDataOf(g *Graph, at []int64, threads int) *Graph {
	r = &Graph{Indptr: r.Indptr, Indices: r.Indices, EdgeTimes: selected(g.EdgeTimes, at, threads), EdgeTypes: selected(g.EdgeTypes, at, threads), Schema: g.Schema, byTime: &timeOrders{}}
	if x := g.EdgeFeatures; x != nil {
		r.EdgeFeatures = x.newLike(int64(len(at)))
		parallel.For(threads, len(at), edgeGrain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				r.EdgeFeatures.copyBits(int64(i), x, at[i])
			}
		})
		r.EdgeFeatures = r.EdgeFeatures.narrowed(r.EdgeTypes, x.RelationWidths())
	}
	if g.EdgeWeights != nil {
		return r.WithEdgeWeights(selected(g.EdgeWeights, at, threads))
	}
	return r
}

// selected returns the elements of x at these positions, or nil if x is nil.
func selected[T any](x []T, at []int64, threads int) []T {
	if x == nil {
		return nil
	}
	y := make([]T, len(at))
	parallel.For(threads, len(at), edgeGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = x[at[i]]
		}
	})
	return y
}
