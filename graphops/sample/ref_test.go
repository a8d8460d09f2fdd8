package sample_test

import (
	"math/rand/v2"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// refBatch is a batch that the reference makes with the simplest code that follows the sampling
// rules.
type refBatch struct {
	hops []refHop // ordered from the seeds outwards
}

type refHop struct {
	dst   []int32   // in order of first appearance
	picks [][]int64 // CSC positions, by destination
	src   []int32   // the destinations, then the other sources of the edges
}

// refSample samples uniformly without replacement, with maps and loops.
func refSample(g *graphops.Graph, seed uint64, purpose philox.Purpose, epoch, step int, fanouts []int, seeds []int32) refBatch {
	var b refBatch
	reached := slices.Clone(seeds)
	for hop, k := range fanouts {
		h := refHop{dst: slices.Clone(reached)}
		have := map[int32]bool{}
		for _, v := range reached {
			have[v] = true
		}
		for _, v := range h.dst {
			var picks []int64
			for _, p := range refFloyd(seed, v, step, philox.C3(purpose, hop, epoch), g.InDegree(v), k) {
				pos := g.Indptr[v] + int64(p)
				picks = append(picks, pos)
				if u := g.Indices[pos]; !have[u] {
					have[u] = true
					reached = append(reached, u)
				}
			}
			h.picks = append(h.picks, picks)
		}
		h.src = slices.Clone(reached)
		b.hops = append(b.hops, h)
	}
	return b
}

// refFloyd is Floyd's algorithm with a set; it computes each draw from the draw's definition.
func refFloyd(seed uint64, v int32, step int, c3 uint32, n, k int) []int {
	var picks []int
	if k < 0 || k >= n {
		for i := range n {
			picks = append(picks, i)
		}
		return picks
	}
	chosen := map[int]bool{}
	for draw, j := 0, n-k; j < n; draw, j = draw+1, j+1 {
		words := philox.Block(seed, [4]uint32{uint32(v), uint32(draw / 4), uint32(step), c3})
		t := int(uint64(words[draw%4]) * uint64(j+1) >> 32)
		if chosen[t] {
			t = j
		}
		chosen[t] = true
	}
	for t := range chosen {
		picks = append(picks, t)
	}
	slices.Sort(picks)
	return picks
}

// edge is one directed edge.
type edge struct{ src, dst int32 }

// build returns the graph of a list of edges, with duplicates and self-loops kept.
func build(nodes int, list ...edge) *graphops.Graph {
	in := make([][]int32, nodes)
	for _, e := range list {
		in[e.dst] = append(in[e.dst], e.src)
	}
	g := &graphops.Graph{Indptr: []int64{0}, Indices: []int32{}}
	for _, src := range in {
		slices.Sort(src)
		g.Indices = append(g.Indices, src...)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// random returns a graph with skewed in-degrees: most nodes have few in-edges, some have none, and
// a few have many. It has duplicate edges and self-loops.
func random(nodes, degree int, seed uint64) *graphops.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1)}
	for v := range nodes {
		n := 0
		switch r.IntN(16) {
		case 0: // isolated
		case 1:
			n = r.IntN(8*degree + 1)
		default:
			n = r.IntN(2*degree + 1)
		}
		from := len(g.Indices)
		for range n {
			g.Indices = append(g.Indices, int32(r.IntN(nodes)))
		}
		slices.Sort(g.Indices[from:])
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	return g
}

// all returns the nodes 0 to n-1.
func all(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}
