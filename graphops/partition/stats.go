package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Stats measures the quality of a division.
type Stats struct {
	// Edges is the number of pairs of different nodes joined by an edge, whatever its direction and
	// multiplicity. EdgeCut is the number of these pairs with nodes in different parts.
	Edges, EdgeCut int64
	Nodes          []int64 // of each part
	Weights        []int64 // of each part: its nodes, or the sum of their weights
	// Halo is, for each part, the number of nodes of other parts with an edge into it: the most
	// nodes that one hop of sampling fetches from other parts.
	Halo []int64
	// Imbalance is the heaviest part's weight divided by the mean; 1 is best.
	Imbalance float64
}

// CutFraction is the fraction of edges that are cut.
func (s *Stats) CutFraction() float64 {
	if s.Edges == 0 {
		return 0
	}
	return float64(s.EdgeCut) / float64(s.Edges)
}

// Measure measures a division of g's nodes: of[v] is the part of node v, below parts, and weights
// are the weights of the nodes, nil if each has weight 1. Cost: a pass over the edges with a search
// for each, and one pass of each part over its own edges; one bit per node and thread.
func Measure(ctx context.Context, g *graphops.Graph, of []int32, parts int, weights []int32, threads int) (Stats, error) {
	n := g.NumNodes()
	if len(of) != n {
		return Stats{}, fmt.Errorf("partition: the parts of %d nodes are given for a graph of %d", len(of), n)
	}
	s := Stats{Nodes: make([]int64, parts), Weights: make([]int64, parts), Halo: make([]int64, parts)}
	for v, p := range of {
		if p < 0 || int(p) >= parts {
			return Stats{}, fmt.Errorf("partition: node %d is in part %d of %d", v, p, parts)
		}
		s.Nodes[p]++
		w := int64(1)
		if weights != nil {
			w = int64(weights[v])
		}
		s.Weights[p] += w
	}
	s.Imbalance = imbalance(s.Weights)
	const grain = 1 << 12
	var mu sync.Mutex
	parallel.For(threads, n, grain, func(lo, hi int) {
		if ctx.Err() != nil {
			return
		}
		var edges, cut int64
		for v := int32(lo); v < int32(hi); v++ {
			before := v
			for _, u := range g.InNeighbors(v) {
				if u == v || u == before { // a self-loop, or a duplicate
					continue
				}
				before = u
				if u > v && has(g.InNeighbors(u), v) {
					continue // counted at the other node
				}
				edges++
				if of[u] != of[v] {
					cut++
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		s.Edges += edges
		s.EdgeCut += cut
	})
	s.halo(ctx, g, of, parts, threads)
	if err := ctx.Err(); err != nil {
		return Stats{}, fmt.Errorf("partition: %w", context.Cause(ctx))
	}
	return s, nil
}

// imbalance returns the heaviest part's weight divided by the mean.
func imbalance(weights []int64) float64 {
	var total, most int64
	for _, w := range weights {
		total += w
		most = max(most, w)
	}
	if total == 0 {
		return 1
	}
	return float64(most) * float64(len(weights)) / float64(total)
}

// halo counts, for each part, the nodes of other parts that it sees; each thread takes a part at a
// time.
func (s *Stats) halo(ctx context.Context, g *graphops.Graph, of []int32, parts, threads int) {
	n := g.NumNodes()
	start, nodes := group(of, parts)
	parallel.For(threads, parts, 1, func(p, _ int) {
		seen := make([]uint64, (n+63)/64)
		for _, v := range nodes[start[p]:start[p+1]] {
			for _, u := range g.InNeighbors(v) {
				if bit := uint64(1) << (u & 63); of[u] != int32(p) && seen[u>>6]&bit == 0 {
					seen[u>>6] |= bit
					s.Halo[p]++
				}
			}
			if v&0xfff == 0 && ctx.Err() != nil {
				return
			}
		}
	})
}

// group lists nodes by group: the nodes of group i are nodes[start[i]:start[i+1]], ascending.
func group(of []int32, count int) (start []int64, nodes []int32) {
	start = make([]int64, count+1)
	for _, p := range of {
		start[p+1]++
	}
	for i := range count {
		start[i+1] += start[i]
	}
	next := slices.Clone(start[:count])
	nodes = make([]int32, len(of))
	for v, p := range of {
		nodes[next[p]] = int32(v)
		next[p]++
	}
	return start, nodes
}

// has reports whether an ascending row contains v.
func has(row []int32, v int32) bool {
	_, found := slices.BinarySearch(row, v)
	return found
}
