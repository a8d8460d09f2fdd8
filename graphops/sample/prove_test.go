package sample_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// timedPath is 3 → 2 → 1 → 0 with times 5, 7 and 9, two more edges 4 → 1 at 7 and 5 → 0 at 20, and 6 → 0 at 3.
func timedPath(times map[edge]int64) *graphops.Graph {
	list := []edge{{3, 2}, {2, 1}, {1, 0}, {4, 1}, {5, 0}, {6, 0}}
	at := map[edge]int64{{3, 2}: 5, {2, 1}: 7, {1, 0}: 9, {4, 1}: 7, {5, 0}: 20, {6, 0}: 3}
	g := build(7, list...)
	var all []int64
	for v, e := int32(0), 0; int(v) < g.NumNodes(); v++ {
		for range g.InDegree(v) {
			is := edge{g.Indices[e], v}
			t := at[is]
			if other, ok := times[is]; ok {
				t = other
			}
			all = append(all, t)
			e++
		}
	}
	return g.WithEdgeData(nil, all)
}

// A leak that is planted in the sampler is caught, and called by its name: with the seed, the hop and the edge. Without it,
// the batch is proved.
func TestPlantedLeaksAreCaught(t *testing.T) {
	set := func(edges ...edge) func(int, int) *sample.EdgeSet {
		var src, dst []int32
		for _, e := range edges {
			src, dst = append(src, e.src), append(dst, e.dst)
		}
		s := sample.NewEdgeSet(src, dst, false)
		return func(int, int) *sample.EdgeSet { return s }
	}
	fanouts := sample.Fanouts{-1, -1, -1}
	seeds := sample.Seeds{IDs: []int32{0, 0}, Times: []int64{10, 9}}
	for _, c := range []struct {
		name    string
		g       *graphops.Graph                   // the sampler's, nil for the true one
		picker  sample.Picker                     // nil: all edges
		sampler sample.AsOf                       // the sampler's options
		proof   sample.AsOf                       // what was asked for
		seeds   func(s sample.Seeds) sample.Seeds // what the sampler gets
		proved  sample.Picker                     // of the proof, if it is another one
		batch   func(b *sample.Batch)
		kind    sample.LeakKind
		says    string
	}{
		{name: "no leak"},
		{name: "a share without seeds", seeds: func(sample.Seeds) sample.Seeds { return sample.Seeds{IDs: []int32{}, Times: []int64{}} }},
		{name: "later edge", g: timedPath(map[edge]int64{{5, 0}: 2}), kind: sample.LeakLater, says: "seed 0 at time 10, hop 0, edge 5→0 at position 1, of time 20"},
		{name: "equal time", proof: sample.AsOf{Strict: true}, kind: sample.LeakEqual, says: "seed 0 at time 9, hop 0, edge 1→0 at position 0, of time 9"},
		{name: "window off by one", sampler: sample.AsOf{Window: 5}, proof: sample.AsOf{Window: 4}, kind: sample.LeakWindow, says: "hop 2, edge 3→2 at position 5, of time 5: the window of 4 before the seed begins at 6"},
		{name: "later node", proof: sample.AsOf{NodeTimes: []int64{0, 0, 0, 30, 0, 0, 0}}, kind: sample.LeakNode, says: "edge 3→2"},
		{name: "reversed", g: reversed(timedPath(nil)), seeds: func(s sample.Seeds) sample.Seeds { s.IDs = []int32{2, 2}; return s }, kind: sample.LeakReversed, says: "edge 1→2"},
		{name: "unknown", batch: func(b *sample.Batch) { b.Blocks[2].EdgePos()[1]++ }, kind: sample.LeakUnknown, says: "node 0 has no such in-edge"},
		{name: "not the most recent", picker: sample.Fanouts{1, 1, 1}, sampler: sample.AsOf{Strategy: ""}, proof: sample.AsOf{Strategy: sample.TakeRecent}, kind: sample.LeakOrder, says: "not among the most recent"},
		{name: "duplicate", batch: func(b *sample.Batch) {
			k := b.Blocks[2]
			k.EdgePos()[1], k.Indices()[1] = k.EdgePos()[0], k.Indices()[0]
		}, kind: sample.LeakDuplicate, says: "edge 1→0 at position 0"},
		{name: "trees", batch: func(b *sample.Batch) {
			k := b.Blocks[2]
			k.Indices()[0] = int32(slices.Index(b.Trees[2:], 1) + 2)
		}, kind: sample.LeakTree, says: "another seed's tree"},
		{name: "shared rows", batch: func(b *sample.Batch) { b.Trees[1] = 0 }, kind: sample.LeakTree, says: "row 1 is node 0 of tree 0"},
		{name: "excluded", proved: &sample.Excluding{Picker: fanouts, Of: set(edge{4, 1})}, kind: sample.LeakExcluded, says: "edge 4→1"},
		{name: "another time of a seed", seeds: func(s sample.Seeds) sample.Seeds { s.Times = []int64{10, 30}; return s }, kind: sample.LeakSeeds, says: "seed 1 is node 0 at time 30, and was node 0 at time 9"},
		{name: "another time of an edge", g: timedPath(map[edge]int64{{2, 1}: 6}), kind: sample.LeakTimes, says: "the batch says 6"},
		{name: "hidden edges", g: timedPath(map[edge]int64{{6, 0}: 30}), kind: sample.LeakOrder, says: "the sampler hid 2 in-edges of node 0, and by the edges' times 1 are hidden"},
	} {
		g, p := timedPath(nil), c.picker
		if c.g == nil {
			c.g = g
		}
		if p == nil {
			p = fanouts
		}
		if c.proved == nil {
			c.proved = p
		}
		got, asked := seeds, seeds
		if c.seeds != nil {
			if got = c.seeds(seeds); c.kind != sample.LeakSeeds {
				asked = got
			}
		}
		var err error
		proof := prover(t, g, sample.Config{Picker: c.proved, Disjoint: true, AsOf: c.proof})
		s := newSampler(t, c.g, sample.Config{Picker: p, Disjoint: true, AsOf: c.sampler})
		for step := 0; step < 20 && err == nil; step++ { // some leaks depend on draws
			b, bad := s.Sample(0, step, got)
			if bad != nil {
				t.Fatal(bad)
			}
			if c.batch != nil {
				c.batch(b)
			}
			err = proof.Check(b, asked)
		}
		var leak *sample.Leak
		switch {
		case c.kind == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &leak) || leak.Kind != c.kind || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want %s: %s", c.name, err, c.kind, c.says)
		}
	}
	// A later edge, two hops away from the seed.
	proof := prover(t, timedPath(map[edge]int64{{3, 2}: 11}), sample.Config{Picker: fanouts, Disjoint: true})
	b, err := newSampler(t, timedPath(nil), sample.Config{Picker: fanouts, Disjoint: true}).Sample(4, 5, seeds)
	if err != nil {
		t.Fatal(err)
	}
	want := "sample: proof of epoch 4, step 5: later edge: seed 0 at time 10, hop 2, edge 3→2 at position 5, of time 11: it is later than the seed"
	if err := proof.Check(b, seeds); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if proof.Proof() != (sample.Proof{}) {
		t.Errorf("a batch with a leak counts as proved: %v", proof.Proof())
	}
	// A clock in milliseconds beside one in seconds.
	var seconds []int64
	for e := range b.Blocks[0].Graph.EdgeTimes {
		seconds = append(seconds, 1_600_000_000+int64(e))
	}
	g := timedPath(nil).WithEdgeData(nil, seconds)
	for _, at := range []int64{1_600_000_100_000, 1_600_000} {
		late := sample.Seeds{IDs: []int32{0}, Times: []int64{at}}
		b, err := newSampler(t, g, sample.Config{Picker: fanouts, Disjoint: true}).Sample(0, 0, late)
		if err != nil {
			t.Fatal(err)
		}
		var leak *sample.Leak
		if err := prover(t, g, sample.Config{Picker: fanouts, Disjoint: true}).Check(b, late); !errors.As(err, &leak) || leak.Kind != sample.LeakClock {
			t.Errorf("seeds at %d, edges from %d on: %v", at, seconds[0], err)
		}
	}
}

// reversed is a graph with its edges the other way, and their times.
func reversed(g *graphops.Graph) *graphops.Graph {
	var list []edge
	at := map[edge]int64{}
	for e, v := range dstOf(g) {
		r := edge{v, g.Indices[e]}
		list, at[r] = append(list, r), g.EdgeTimes[e]
	}
	r := build(g.NumNodes(), list...)
	var times []int64
	for e, v := range dstOf(r) {
		times = append(times, at[edge{r.Indices[e], v}])
	}
	return r.WithEdgeData(nil, times)
}

// What was proved is counted: batches, seeds, edges and hidden edges.
func TestProofCounts(t *testing.T) {
	g := timedPath(nil)
	c := sample.Config{Picker: sample.Fanouts{-1, -1, -1}, Disjoint: true}
	proof, s := prover(t, g, c), newSampler(t, g, c)
	for step := range 3 {
		seeds := sample.Seeds{IDs: []int32{0, 1}, Times: []int64{10, 6}}
		b, err := s.Sample(0, step, seeds)
		if err != nil {
			t.Fatal(err)
		}
		if err := proof.Check(b, seeds); err != nil {
			t.Fatal(err)
		}
		// Seed 0 sees 1 → 0 and 6 → 0, then 2 → 1 and 4 → 1, then 3 → 2; 5 → 0 is hidden at each hop. Seed 1 sees nothing.
		want := []sample.View{{Seed: 0, Time: 10, Latest: 9, Edges: 2 + 4 + 5, Hidden: 3}, {Seed: 1, Time: 6, Latest: -1 << 63, Hidden: 6}}
		if got := b.Views(); !slices.Equal(got, want) {
			t.Fatalf("views %+v, want %+v", got, want)
		}
	}
	if p := proof.Proof(); p != (sample.Proof{Batches: 3, Seeds: 6, Edges: 33, Hidden: 27}) {
		t.Errorf("%+v", p)
	}
	want := "no seed saw its future: 3 batches with 6 seeds and 33 edges were checked, from which 27 later or older edges were hidden"
	if s := proof.Proof().String(); s != want {
		t.Errorf("%q, want %q", s, want)
	}
	if _, err := sample.ProverOf(build(2, edge{0, 1}), c); err == nil || !strings.Contains(err.Error(), "nothing to prove") {
		t.Error(err)
	}
}
