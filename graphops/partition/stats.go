package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Stats says how good a division is.
type Stats struct {
	// Edges is the number of pairs of different nodes with an edge between them, in
	// whichever direction and however often; EdgeCut is those of them whose nodes
	// are in different parts.
	Edges, EdgeCut int64
	Nodes          []int64 // of each part
	Weights        []int64 // of each part: its nodes, or the sum of their weights
	// Halo is for each part the number of nodes of other parts that have an edge
	// into it: what one hop of sampling fetches from elsewhere at most.
	Halo []int64
	// Imbalance is the heaviest part's weight over the mean, 1 at best.
	Imbalance float64
}

// CutFraction is the share of edges that are cut.
func (s *Stats) CutFraction() float64 {
	if s.Edges == 0 {
		return 0
	}
	return float64(s.EdgeCut) / float64(s.Edges)
}

// Measure measures a division of g's nodes: of holds the part of each node, below
// parts, and weights the nodes' weights, nil where each weighs 1. Cost: a pass over
// the edges with a search each, and a pass a part over its own; a bit a node and
// thread.
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
	var total, most int64
	for _, w := range s.Weights {
		total += w
		most = max(most, w)
	}
	s.Imbalance = 1
	if total > 0 {
		s.Imbalance = float64(most) * float64(parts) / float64(total)
	}
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
				if u == v || u == before { // a loop, or once more
					continue
				}
				before = u
				if u > v && has(g.InNeighbors(u), v) {
					continue // counted from the other side
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

// halo counts the nodes that each part sees of others, a part at a time on each
// thread.
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

// group lists nodes by what they belong to: those of i are nodes[start[i]:start[i+1]],
// ascending.
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

// has searches an ascending row.
func has(row []int32, v int32) bool {
	_, found := slices.BinarySearch(row, v)
	return found
}
