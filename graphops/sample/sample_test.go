package sample_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

func newSampler(t rapid.TB, g *graphops.Graph, c sample.Config) *sample.Sampler {
	t.Helper()
	s, err := sample.New(g, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSample(t rapid.TB, s *sample.Sampler, epoch, step int, seeds []int32) *sample.Batch {
	t.Helper()
	b, err := s.Sample(epoch, step, sample.Seeds{IDs: seeds})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkEqual compares a batch with the reference's batch, row by row and edge by edge.
func checkEqual(t rapid.TB, b *sample.Batch, want refBatch) {
	t.Helper()
	if len(b.Blocks) != len(want.hops) {
		t.Fatalf("%d blocks, want %d", len(b.Blocks), len(want.hops))
	}
	for hop, w := range want.hops {
		k := b.Blocks[len(b.Blocks)-1-hop]
		if k.Level != hop || k.NumDst != len(w.dst) || !slices.Equal(k.SrcIDs(), w.src) {
			t.Fatalf("hop %d: level %d, %d destinations, sources %v; want %d destinations, sources %v", hop, k.Level, k.NumDst, k.SrcIDs(), len(w.dst), w.src)
		}
		for d := range w.dst {
			got := k.EdgePos()[k.Indptr()[d]:k.Indptr()[d+1]]
			if !slices.Equal(got, w.picks[d]) {
				t.Fatalf("hop %d, node %d: edges %v, want %v", hop, w.dst[d], got, w.picks[d])
			}
		}
	}
}

// checkBatch checks the properties of every batch of uniform picks.
func checkBatch(t rapid.TB, g *graphops.Graph, b *sample.Batch, seeds []int32, fanouts []int) {
	t.Helper()
	if !slices.Equal(b.Seeds, seeds) || len(b.Blocks) != len(fanouts) {
		t.Fatalf("seeds %v and %d blocks, want %v and %d", b.Seeds, len(b.Blocks), seeds, len(fanouts))
	}
	edges := 0
	for i, k := range b.Blocks {
		hop := len(b.Blocks) - 1 - i
		if k.Level != hop || k.NumSrc != len(k.SrcIDs()) || k.DstStart != 0 || len(k.Indptr()) != k.NumDst+1 || k.SrcIDs() == nil {
			t.Fatalf("block %d is malformed: %+v", i, k)
		}
		want := seeds
		if i+1 < len(b.Blocks) {
			want = b.Blocks[i+1].SrcIDs()
		}
		if k.NumDst != len(want) || !slices.Equal(k.SrcIDs()[:k.NumDst], want) {
			t.Fatalf("block %d: destinations %v are not the next block's sources %v", i, k.SrcIDs()[:k.NumDst], want)
		}
		distinct := map[int32]bool{}
		for _, v := range k.SrcIDs() {
			if distinct[v] {
				t.Fatalf("block %d: source %d occurs twice", i, v)
			}
			distinct[v] = true
		}
		reached := map[int32]bool{}
		for d := range k.NumDst {
			v := k.DstID(d)
			n := g.InDegree(v)
			if f := fanouts[hop]; f >= 0 {
				n = min(n, f)
			}
			if k.InDegree(d) != n {
				t.Fatalf("block %d: node %d took %d edges, want %d", i, v, k.InDegree(d), n)
			}
			last := int64(-1)
			for e := k.Indptr()[d]; e < k.Indptr()[d+1]; e++ {
				pos := k.Pos(e)
				if pos < g.Indptr[v] || pos >= g.Indptr[v+1] {
					t.Fatalf("block %d: the edge at %d does not lead into node %d, whose edges are [%d, %d)", i, pos, v, g.Indptr[v], g.Indptr[v+1])
				}
				if pos <= last {
					t.Fatalf("block %d: the edges of node %d repeat or descend: %d after %d", i, v, pos, last)
				}
				last = pos
				if u := k.SrcIDs()[k.Indices()[e]]; u != g.Indices[pos] {
					t.Fatalf("block %d: the edge at %d comes from %d, the block says %d", i, pos, g.Indices[pos], u)
				}
				reached[k.Indices()[e]] = true
			}
		}
		for row := k.NumDst; row < k.NumSrc; row++ {
			if !reached[int32(row)] {
				t.Fatalf("block %d: source row %d has no edge", i, row)
			}
		}
		edges += k.NumEdges()
	}
	if b.Edges() != edges || !slices.Equal(b.InputIDs(), b.Blocks[0].SrcIDs()) {
		t.Fatalf("Edges %d, want %d", b.Edges(), edges)
	}
}

var drawn = []struct {
	name string
	g    *graphops.Graph
}{
	{"one node", build(1)},
	{"self-loop", build(1, edge{0, 0})},
	{"isolated nodes", build(4, edge{0, 2})},
	{"duplicate edges", build(3, edge{0, 1}, edge{0, 1}, edge{0, 1}, edge{2, 1}, edge{1, 1})},
	{"cycle", build(5, edge{0, 1}, edge{1, 2}, edge{2, 3}, edge{3, 4}, edge{4, 0})},
	{"star", build(9, edge{1, 0}, edge{2, 0}, edge{3, 0}, edge{4, 0}, edge{5, 0}, edge{6, 0}, edge{7, 0}, edge{8, 0})},
	{"random", random(400, 6, 1)},
}

func TestSampleOfDrawnGraphs(t *testing.T) {
	for _, c := range drawn {
		n := c.g.NumNodes()
		for _, fanouts := range [][]int{{2}, {0}, {-1}, {3, 2, 1}, {-1, 2}, {2, -1}, {100, 100}} {
			for _, seeds := range [][]int32{{}, {0}, {int32(n - 1)}, all(n)} {
				t.Run(fmt.Sprint(c.name, fanouts, len(seeds)), func(t *testing.T) {
					s := newSampler(t, c.g, sample.Config{Picker: sample.Fanouts(fanouts), Seed: 7, Threads: 2})
					b := mustSample(t, s, 1, 2, seeds)
					checkBatch(t, c.g, b, seeds, fanouts)
					checkEqual(t, b, refSample(c.g, 7, philox.Sample, 1, 2, fanouts, seeds))
				})
			}
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	s := newSampler(t, build(0), sample.Config{Picker: sample.Fanouts{2, 2}})
	b := mustSample(t, s, 0, 0, nil)
	checkBatch(t, build(0), b, nil, []int{2, 2})
	if _, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0}}); err == nil {
		t.Error("sampling node 0 of a graph without nodes gave no error")
	}
}

// One sampler makes many batches, some of which are released, and equals a reference that keeps no
// state.
func TestSampleIsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "nodes")
		g := random(n, rapid.IntRange(0, 20).Draw(t, "degree"), rapid.Uint64().Draw(t, "graph"))
		fanouts := rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 1, 2, 5, 10, 49, 60}), 1, 3).Draw(t, "fanouts")
		seed := rapid.Uint64().Draw(t, "seed")
		purpose := rapid.SampledFrom([]sample.Purpose{sample.Training, sample.Evaluation, sample.User}).Draw(t, "purpose")
		threads := rapid.IntRange(1, 3).Draw(t, "threads")
		s := newSampler(t, g, sample.Config{Picker: sample.Fanouts(fanouts), Seed: seed, Purpose: purpose, Threads: threads})
		type kept struct {
			b    *sample.Batch
			want refBatch
		}
		var held []kept
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			epoch, step := rapid.IntRange(0, sample.MaxEpochs-1).Draw(t, "epoch"), rapid.IntRange(0, 1<<32-1).Draw(t, "step")
			seeds := rapid.Permutation(all(n)).Draw(t, "order")[:rapid.IntRange(0, n).Draw(t, "seeds")]
			b := mustSample(t, s, epoch, step, seeds)
			want := refSample(g, seed, philox.Purpose(purpose), epoch, step, fanouts, seeds)
			checkBatch(t, g, b, seeds, fanouts)
			checkEqual(t, b, want)
			if rapid.Bool().Draw(t, "release") {
				b.Release()
			} else {
				held = append(held, kept{b, want})
			}
		}
		for _, k := range held { // batches that were held while later ones were made
			checkEqual(t, k.b, k.want)
		}
	})
}

// A node's picks depend only on its own draws.
func TestPicksDoNotDependOnTheOtherSeeds(t *testing.T) {
	g := random(500, 12, 3)
	s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{4}, Seed: 11})
	whole := mustSample(t, s, 3, 5, all(500)).Blocks[0]
	for v := int32(0); v < 500; v += 7 {
		alone := mustSample(t, s, 3, 5, []int32{v}).Blocks[0]
		if want := whole.EdgePos()[whole.Indptr()[v]:whole.Indptr()[v+1]]; !slices.Equal(alone.EdgePos(), want) {
			t.Fatalf("node %d picks %v alone and %v among other seeds", v, alone.EdgePos(), want)
		}
	}
}

func TestDrawsDifferBetween(t *testing.T) {
	g := random(200, 30, 4)
	positions := func(c sample.Config, epoch, step int) string {
		c.Picker = sample.Fanouts{5}
		return fmt.Sprint(mustSample(t, newSampler(t, g, c), epoch, step, all(200)).Blocks[0].EdgePos())
	}
	base := positions(sample.Config{Seed: 1}, 2, 3)
	for name, other := range map[string]string{
		"seeds":    positions(sample.Config{Seed: 2}, 2, 3),
		"key half": positions(sample.Config{Seed: 1 | 1<<40}, 2, 3),
		"epochs":   positions(sample.Config{Seed: 1}, 3, 3),
		"steps":    positions(sample.Config{Seed: 1}, 2, 4),
		"purposes": positions(sample.Config{Seed: 1, Purpose: sample.Evaluation}, 2, 3),
	} {
		if other == base {
			t.Errorf("batches of two different %s have the same picks", name)
		}
	}
	if positions(sample.Config{Seed: 1, Purpose: sample.Training, Threads: 3}, 2, 3) != base {
		t.Error("the picks of the default purpose are not those of purpose Sample")
	}
}

// Each hop has its own draws: a node that is expanded in two hops picks differently in each.
func TestEachHopDrawsAfresh(t *testing.T) {
	g := random(100, 40, 5)
	b := mustSample(t, newSampler(t, g, sample.Config{Picker: sample.Fanouts{5, 5}, Seed: 1}), 0, 0, all(100))
	if slices.Equal(b.Blocks[0].EdgePos(), b.Blocks[1].EdgePos()) {
		t.Error("both hops picked the same edges")
	}
}

func TestRelease(t *testing.T) {
	g := random(300, 6, 6)
	s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{3, 3}, Seed: 1})
	b := mustSample(t, s, 0, 0, all(300))
	first := &b.Blocks[0].Indices()[0]
	b.Release()
	b.Release()
	if b.Seeds != nil || b.Blocks != nil || b.Edges() != 0 || len(b.InputIDs()) != 0 {
		t.Errorf("a released batch still has %v", b)
	}
	again, other := mustSample(t, s, 0, 1, all(300)[:200]), mustSample(t, s, 0, 2, all(300))
	if &again.Blocks[0].Indices()[0] != first {
		t.Error("the released memory was not reused")
	}
	if &other.Blocks[0].Indices()[0] == first {
		t.Error("two batches share memory")
	}
	checkEqual(t, again, refSample(g, 1, philox.Sample, 0, 1, []int{3, 3}, all(300)[:200]))
}

func TestErrors(t *testing.T) {
	g := random(10, 3, 1)
	newErr := func(g *graphops.Graph, c sample.Config) error { _, err := sample.New(g, c); return err }
	ok := newSampler(t, g, sample.Config{Picker: sample.Fanouts{2}})
	sampleErr := func(epoch, step int, seeds ...int32) error {
		_, err := ok.Sample(epoch, step, sample.Seeds{IDs: seeds})
		return err
	}
	damaged := &graphops.Graph{Indptr: []int64{0, 2, 1}, Indices: []int32{0, 5}}
	damagedErr := func(p sample.Picker, f sample.FrontierPicker, seeds ...int32) error {
		_, err := newSampler(t, damaged, sample.Config{Picker: p, Frontier: f, Hops: 1}).Sample(0, 0, sample.Seeds{IDs: seeds})
		return err
	}
	takeAll := pickFunc(func(_ *sample.Hop, _ int32, nbrs, out []int32) []int32 { return append(out, all(len(nbrs))...) })
	nothing := frontierFunc(func(*sample.Hop, *graphops.Graph, []int32, func(int, []int32)) error { return nil })
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"no graph", newErr(nil, sample.Config{Picker: sample.Fanouts{2}}), "the graph is missing"},
		{"zero graph", newErr(&graphops.Graph{}, sample.Config{Picker: sample.Fanouts{2}}), "the graph is missing"},
		{"no picker", newErr(g, sample.Config{}), "has no picker"},
		{"two pickers", newErr(g, sample.Config{Picker: sample.Fanouts{2}, Frontier: nothing}), "not both"},
		{"no hops", newErr(g, sample.Config{Picker: sample.Fanouts{}}), "samples 0 hops"},
		{"own picker without hops", newErr(g, sample.Config{Picker: takeAll}), "set Hops"},
		{"too few fanouts", newErr(g, sample.Config{Picker: sample.Fanouts{2}, Hops: 2}), "Config.Hops is 2, but sample.Fanouts has 1"},
		{"too many hops", newErr(g, sample.Config{Picker: takeAll, Hops: 257}), "1 to 256"},
		{"fanout", newErr(g, sample.Config{Picker: sample.Fanouts{2, -2}}), "the fanout of hop 1 is -2"},
		{"huge fanout", newErr(g, sample.Config{Picker: sample.Fanouts{philox.MaxDraws + 1}}), "the fanout of hop 0 is 262145"},
		{"purpose", newErr(g, sample.Config{Picker: sample.Fanouts{2}, Purpose: sample.Purpose(philox.Dropout)}), "purpose 2"},
		{"seed too large", sampleErr(0, 0, 3, 10), "seed 10 at position 1 is not a node: the graph's nodes are 0 to 9"},
		{"seed negative", sampleErr(0, 0, -1), "seed -1 at position 0"},
		{"seed twice", sampleErr(0, 0, 3, 4, 5, 4), "seed 4 occurs twice, at positions 1 and 3"},
		{"epoch", sampleErr(1<<20, 0, 1), "epoch 1048576"},
		{"step", sampleErr(0, -1, 1), "step -1"},
		{"edge from nowhere", damagedErr(sample.Fanouts{-1}, nil, 0), "edge 1 of node 0, at position 1 of the indices, comes from node 5"},
		{"offsets descend", damagedErr(sample.Fanouts{-1}, nil, 1), "the edges of node 1 are from 2 to 1"},
		{"offsets descend, own picker", damagedErr(takeAll, nil, 1), "the edges of node 1 are from 2 to 1"},
		{"offsets descend, frontier", damagedErr(nil, nothing, 1), "the edges of node 1 are from 2 to 1"},
	}
	for _, c := range cases {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, c.err, c.want)
		}
	}
	// The sampler still works after all these errors.
	b := mustSample(t, ok, 0, 0, []int32{3, 4})
	checkEqual(t, b, refSample(g, 0, philox.Sample, 0, 0, []int{2}, []int32{3, 4}))
}

func TestFewerHopsThanFanouts(t *testing.T) {
	s := newSampler(t, random(10, 3, 1), sample.Config{Picker: sample.Fanouts{2, 3, 4}, Hops: 2})
	if b := mustSample(t, s, 0, 0, all(10)); s.Hops() != 2 || len(b.Blocks) != 2 {
		t.Errorf("%d hops and %d blocks, want 2", s.Hops(), len(b.Blocks))
	}
}
