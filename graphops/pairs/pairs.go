// Package pairs provides what link prediction needs beside a graph network: splits of a graph's
// edges, negative edges, decoders, losses, metrics, and the baselines without parameters.
//
// # Basics
//
// Link prediction asks whether an edge is there. Some edges of a graph are hidden, a network
// computes an embedding of each node from the others, and a decoder turns the embeddings of two
// nodes into a score.
//
//	s, err := pairs.Random(g, pairs.SplitOptions{Seed: 1})
//	neg, err := s.Negatives(pairs.NegativeOptions{Strict: true, Undirected: s.Undirected})
//	batch, err := neg.Draw(epoch, step, ids, s.Train.Edges)
//
// The network sees s.Message alone; s.Train, s.Val and s.Test are the edges to predict.
//
// # Determinism
//
// A split is a function of the graph, the options and the seed. The negatives of an edge are a
// function of (seed, epoch, step, edge): they depend neither on workers nor on threads.
//
// # Leaks
//
// A prediction is worth nothing if the network has seen the edge. [Split] keeps the two directions of a
// pair, if the graph has both, and all copies of an edge on the same side, in every graph. [Leak] checks
// a sampled batch.
package pairs

import "fmt"

// Edges are directed edges: edge i is Src[i] → Dst[i]. The slices are equally long.
type Edges struct{ Src, Dst []int32 }

// Len is the number of edges.
func (e Edges) Len() int { return len(e.Src) }

// Slice returns the edges [lo, hi), sharing their memory.
func (e Edges) Slice(lo, hi int) Edges { return Edges{e.Src[lo:hi], e.Dst[lo:hi]} }

// Append returns the edges with one more.
func (e Edges) Append(src, dst int32) Edges {
	return Edges{append(e.Src, src), append(e.Dst, dst)}
}

// Join returns the edges of both, in new memory.
func (e Edges) Join(other Edges) Edges {
	return Edges{append(append([]int32(nil), e.Src...), other.Src...), append(append([]int32(nil), e.Dst...), other.Dst...)}
}

func (e Edges) String() string { return fmt.Sprintf("%d edges", e.Len()) }

// check returns an error if the edges are not edges between nodes 0 to nodes-1.
func (e Edges) check(what string, nodes int) error {
	if len(e.Src) != len(e.Dst) {
		return fmt.Errorf("pairs: %s have %d sources and %d destinations; edge i is Src[i] → Dst[i], so give equally many", what, len(e.Src), len(e.Dst))
	}
	for i := range e.Src {
		if uint32(e.Src[i]) >= uint32(nodes) || uint32(e.Dst[i]) >= uint32(nodes) {
			return fmt.Errorf("pairs: edge %d of %s is %d → %d, but the graph has the nodes 0 to %d", i, what, e.Src[i], e.Dst[i], nodes-1)
		}
	}
	return nil
}
