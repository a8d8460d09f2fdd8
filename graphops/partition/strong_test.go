package partition

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The strong preset respects the limits, cuts no more edges than the fast one, and gives the same
// parts on any number of threads.
func TestStrong(t *testing.T) {
	for _, c := range []struct{ nodes, parts int }{{60, 2}, {400, 3}} {
		g := made(t, c.nodes, 4*c.nodes, false)
		fast := divide(t, g, c.parts, Options{Seed: 1})
		strong := divide(t, g, c.parts, Options{Seed: 1, Preset: Strong, Threads: 1, effort: 1 << 20})
		if strong.EdgeCut > fast.EdgeCut || slices.Max(strong.Nodes) > limit(int64(c.nodes), c.parts, 0.03) {
			t.Errorf("%v\n%v\n%v", fast, strong, strong.Nodes)
		}
		if again := divide(t, g, c.parts, Options{Seed: 1, Preset: Strong, Threads: 3, effort: 1 << 20}); !slices.Equal(strong.Of, again.Of) {
			t.Error("the number of threads changes the parts")
		}
	}
}

// The minimum cut over a whole corridor, computed by hand: two triangles joined by one edge start
// from a bad division.
func TestFlow(t *testing.T) {
	src, dst := []int32{0, 1, 2, 2, 3, 4, 5}, []int32{1, 2, 0, 3, 4, 5, 3}
	g, err := graphops.FromEdges(6, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := &divider{ctx: t.Context(), parts: 2, limits: limits{most: []int64{4, 4}}}
	w := m.undirected(g)
	of := []int32{0, 0, 1, 1, 1, 0}
	s := newSearch(m, 0)
	r := newMoves(w, of, m.limits)
	before := w.cut(of) / 2
	if saved := s.flows(r); before-saved != w.cut(of)/2 || saved <= 0 {
		t.Errorf("flows report %d saved of %d and leave a cut of %d: %v", saved, before, w.cut(of)/2, of)
	}
}

// On random graphs, the savings that flows, local searches and matching report equal the difference
// of the cuts. No part exceeds its limit, and the parts' sizes stay correct.
func TestSearches(t *testing.T) {
	for seed := range 12 {
		g := made(t, 300, 700+50*seed, true)
		parts := 2 + seed%3
		m := &divider{ctx: t.Context(), parts: parts, o: Options{Imbalance: 0.05, Seed: uint64(seed)}}
		w := m.undirected(g)
		m.limits = w.limits(slices.Repeat([]int{1}, parts), 0.05)
		of := random(300, parts, m.o)
		s := newSearch(m, 1)
		r := newMoves(w, of, m.limits)
		for name, f := range map[string]func(*moves) int64{"local": func(r *moves) int64 { return s.local(r, 12, 60) }, "flows": s.flows, "climb": func(r *moves) int64 { return r.climb(t.Context()) }} {
			before := w.cut(of) / 2
			r.border = nil
			saved := f(r)
			if after := w.cut(of) / 2; before-after != saved || r.over() > 0 {
				t.Errorf("%s: the cut is %d before and %d after, but the reported saving is %d; %v above the limits", name, before, after, saved, r.over())
			}
			if fresh := newMoves(w, of, m.limits); !slices.Equal(fresh.size, r.size) {
				t.Errorf("%s: sizes %v, counted %v", name, r.size, fresh.size)
			}
		}
		into, count := s.match(w, 450, of) // no more than two nodes a group
		size := make([]int, count)
		for v, c := range into {
			size[c]++
			if size[c] > 2 || of[v] != of[slices.Index(into, c)] {
				t.Errorf("cluster %d has %d nodes, or nodes of several parts", c, size[c])
			}
		}
	}
}

// pieces makes a graph with two hubs whose best half is in many pieces: a core, in which the hubs
// are linked to all, and cliques of five nodes that one edge each links to the core.
func pieces(t *testing.T, count int) *graphops.Graph {
	core := int32(5 * count)
	var src, dst []int32
	link := func(a, b int32) { src, dst = append(src, a, b), append(dst, b, a) }
	for v := int32(2); v < core; v++ {
		link(0, v)
		link(1, v)
		link(v, 2+(v*7+3)%(core-2))
	}
	for c := range int32(count) {
		first := core + 5*c
		for i := range int32(5) {
			for j := range i {
				link(first+i, first+j)
			}
		}
		link(first, 2+(c*11)%(core-2))
	}
	g, err := graphops.FromEdges(int(2*core), src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Annealing collects nearly all cliques of the graph of pieces, the strong preset, which anneals
// that graph, all: its cut is the planted one, one edge a clique. It does not depend on threads.
func TestAnneal(t *testing.T) {
	testneed.NotShort(t, "it divides graphs many times")
	const count = 20
	g := pieces(t, count)
	m := &divider{ctx: t.Context(), parts: 2, o: Options{Imbalance: 0.03, Seed: 5}}
	w := m.undirected(g)
	m.limits = w.limits([]int{1, 1}, 0.03)
	s := newSearch(m, 1)
	of := s.anneal(w, 3000)
	if cut, over := w.cut(of)/2, newMoves(w, of, m.limits).over(); cut > count*5/4 || over != 0 || s.work < 3000*visit*int64(w.nodes()) {
		t.Errorf("a cut of %d, planted %d; %v above the limits; %d edges looked at", cut, count, over, s.work)
	}
	needed := int64(2*brood*visit) * fewSweeps * int64(w.nodes())
	if w.sweeps(needed/(2*brood)) != fewSweeps || w.sweeps(needed/(2*brood)-1) != 0 {
		t.Errorf("sweeps are %d and %d", w.sweeps(needed/(2*brood)), w.sweeps(needed/(2*brood)-1))
	}
	one := divide(t, g, 2, Options{Seed: 2, Preset: Strong, Threads: 1, effort: needed})
	two := divide(t, g, 2, Options{Seed: 2, Preset: Strong, Threads: 2, effort: needed})
	if !slices.Equal(one.Of, two.Of) || one.EdgeCut != count {
		t.Errorf("%v\n%v", one, two)
	}
}

// Annealing keeps to the limits of three parts too, with and without the table of gains, and an edgeless graph is no
// special case.
func TestAnnealParts(t *testing.T) {
	for _, edges := range []int{0, 100, 900} {
		g := made(t, 300, edges, true)
		m := &divider{ctx: t.Context(), parts: 3, o: Options{Imbalance: 0.05}}
		w := m.undirected(g)
		m.limits = w.limits([]int{1, 1, 1}, 0.05)
		of := random(300, 3, m.o)
		before := w.cut(of)
		s := newSearch(m, 1)
		if of := s.anneal(w, 50); newMoves(w, of, m.limits).over() > 0 || w.cut(of) > before || edges > 0 && w.cut(of) == before {
			t.Errorf("%d edges: a cut of %d before and %d after", edges, before, w.cut(of))
		}
	}
}
