package sample_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testneed"
)

// refTree is the tree of one seed, by the simplest code that follows the rules: the picked CSC positions of each node, by hop.
func refTree(g *graphops.Graph, key uint64, epoch, step int, fanouts []int, seed int32, time *int64) (hops []map[int32][]int64) {
	until := int64(0)
	if time != nil {
		until = *time
	}
	words := philox.Block(key, [4]uint32{uint32(seed), uint32(until), uint32(uint64(until) >> 32), philox.C3(philox.Trees, 0, 0)})
	own := uint64(words[0]) | uint64(words[1])<<32
	reached := map[int32]bool{seed: true}
	for hop, k := range fanouts {
		picks, next := map[int32][]int64{}, map[int32]bool{}
		for v := range reached {
			next[v] = true
			var seen []int64
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if time == nil || g.EdgeTimes[e] <= until {
					seen = append(seen, e)
				}
			}
			if time != nil {
				slices.SortStableFunc(seen, func(a, b int64) int { return cmp.Compare(g.EdgeTimes[a], g.EdgeTimes[b]) })
			}
			picks[v] = nil
			for _, p := range refFloyd(own, v, step, philox.C3(philox.Sample, hop, epoch), len(seen), k) {
				picks[v] = append(picks[v], seen[p])
				next[g.Indices[seen[p]]] = true
			}
			slices.Sort(picks[v])
		}
		hops = append(hops, picks)
		reached = next
	}
	return hops
}

// treesOf are the picks of a batch, by hop, tree and node.
func treesOf(t rapid.TB, b *sample.Batch) (hops []map[[2]int32][]int64) {
	t.Helper()
	for i := len(b.Blocks) - 1; i >= 0; i-- {
		k, picks := b.Blocks[i], map[[2]int32][]int64{}
		for d := range k.NumDst {
			at := [2]int32{b.Trees[d], k.DstID(d)}
			if _, twice := picks[at]; twice {
				t.Fatalf("hop %d has node %d twice in tree %d", len(hops), at[1], at[0])
			}
			from, to := k.Indptr()[d], k.Indptr()[d+1]
			picks[at] = k.EdgePos()[from:to]
			for e := from; e < to; e++ {
				if row := k.Indices()[e]; b.Trees[row] != at[0] || k.SrcID(int(row)) != k.Graph.Indices[k.EdgePos()[e]] {
					t.Fatalf("hop %d: an edge of tree %d comes from row %d, node %d of tree %d", len(hops), at[0], row, k.SrcID(int(row)), b.Trees[row])
				}
			}
		}
		hops = append(hops, picks)
	}
	return hops
}

// With disjoint trees each seed has its own neighbourhood, which depends on the seed and its time alone, and a seed with a
// time sees no later edge at any hop. Seeds may be equal, shares of ranks have the trees of the whole batch, and threads
// change nothing.
func TestDisjointTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 200).Draw(t, "nodes")
		g := random(nodes, rapid.IntRange(0, 12).Draw(t, "degree"), rapid.Uint64().Draw(t, "graph"))
		_, times := edgeData(len(g.Indices), "", true)
		g = g.WithEdgeData(nil, times)
		fanouts := rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 1, 2, 5, 60}), 1, 3).Draw(t, "fanouts")
		n := rapid.IntRange(0, 30).Draw(t, "number of seeds")
		seeds := sample.Seeds{IDs: rapid.SliceOfN(rapid.Int32Range(0, int32(nodes-1)), n, n).Draw(t, "seeds")}
		if rapid.Bool().Draw(t, "with times") {
			seeds.Times = rapid.SliceOfN(rapid.Int64Range(-60, 60), n, n).Draw(t, "times")
		}
		c := sample.Config{Picker: sample.Fanouts(fanouts), Seed: rapid.Uint64().Draw(t, "seed"), Disjoint: true, Threads: rapid.IntRange(1, 3).Draw(t, "threads")}
		s := newSampler(t, g, c)
		var released *sample.Batch
		for step := range 2 { // the second time in memory of the first batch
			b, err := s.Sample(3, step, seeds)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b.Seeds, seeds.IDs) || !slices.Equal(b.Times, seeds.Times) || b.Trees == nil || len(b.Trees) != b.Inputs() {
				t.Fatalf("seeds %v, times %v, trees %v of %d inputs; the seeds were %+v", b.Seeds, b.Times, b.Trees, b.Inputs(), seeds)
			}
			got := treesOf(t, b)
			want := make([]map[[2]int32][]int64, len(fanouts))
			for i, v := range seeds.IDs {
				var time *int64
				if seeds.Times != nil {
					time = &seeds.Times[i]
				}
				for hop, picks := range refTree(g, c.Seed, 3, step, fanouts, v, time) {
					if want[hop] == nil {
						want[hop] = map[[2]int32][]int64{}
					}
					for u, p := range picks {
						want[hop][[2]int32{int32(i), u}] = p
					}
				}
			}
			for hop := range fanouts {
				if len(got[hop]) != len(want[hop]) {
					t.Fatalf("hop %d has %d destinations, want %d", hop, len(got[hop]), len(want[hop]))
				}
				for at, p := range want[hop] {
					if !slices.Equal(got[hop][at], p) {
						t.Fatalf("hop %d, tree %d, node %d: edges %v, want %v", hop, at[0], at[1], got[hop][at], p)
					}
				}
			}
			whole, shares := sample.NewDigest(), sample.NewDigest()
			whole.AddBatch(b)
			var picks [][]byte
			for rank := range 3 {
				lo, hi := sample.Share(n, rank, 3)
				part, err := s.Sample(3, step, seeds.Slice(lo, hi))
				if err != nil {
					t.Fatal(err)
				}
				picks = append(picks, sample.EncodePicks(part))
				part.Release()
			}
			if err := shares.AddStep(seeds, picks); err != nil || shares.Sum() != whole.Sum() || shares.Edges() != whole.Edges() {
				t.Fatalf("three ranks: %v, %d edges; one has %d", err, shares.Edges(), whole.Edges())
			}
			if released == nil {
				released = b
				b.Release()
			}
		}
	})
}

// What a picker sees of a seed with a time is what it sees of a graph without the later edges, whose in-edges are in the order
// of time: weights, types, times and positions too, and without the edges that [sample.Excluding] takes out.
func TestPickersSeeThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 60).Draw(t, "nodes")
		g := random(nodes, 9, rapid.Uint64().Draw(t, "graph"))
		n := len(g.Indices)
		_, times := edgeData(n, "", true)
		weights, types := make([]float32, n), make([]uint16, n)
		for e := range n {
			weights[e], types[e] = float32(1+e%7), uint16(e*e%3)
		}
		var gone sample.EdgeSet
		if n > 0 {
			gone = *sample.NewEdgeSet(g.Indices[:n/3], dstOf(g)[:n/3], false)
		}
		until := rapid.Int64Range(-60, 60).Draw(t, "until")
		// The graph as of then, whose edges are numbered anew.
		excluding := rapid.Bool().Draw(t, "excluding")
		past, at := &graphops.Graph{Indptr: []int64{0}, Indices: []int32{}}, []int64{}
		var data graphops.EdgeData
		shape := graphops.EdgeShape{Weighted: true, Times: true, Typed: true}
		data.SetLen(shape, 0)
		all := graphops.EdgeData{Weights: weights, Times: times, Types: types}
		for v := range nodes {
			var seen []int64
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if times[e] <= until && !(excluding && gone.Has(g.Indices[e], int32(v))) {
					seen = append(seen, e)
				}
			}
			slices.SortStableFunc(seen, func(a, b int64) int { return cmp.Compare(times[a], times[b]) })
			for _, e := range seen {
				past.Indices, at = append(past.Indices, g.Indices[e]), append(at, e)
				data.Append(all.Slice(e, e+1))
			}
			past.Indptr = append(past.Indptr, int64(len(past.Indices)))
		}
		g, past = g.WithEdges(all), past.WithEdges(data)
		pickers := map[string]sample.Picker{
			"weighted":  sample.Weighted{Fanouts: sample.Fanouts{3, 2}},
			"labor":     sample.Labor{Fanouts: sample.Fanouts{3, 2}},
			"relations": &sample.RelationFanouts{All: sample.Fanouts{2, 2}, By: map[int]sample.Fanouts{1: {1, 1}}},
			"looking":   looking{},
		}
		name := rapid.SampledFrom([]string{"weighted", "labor", "relations", "looking"}).Draw(t, "picker")
		p := pickers[name]
		then := p
		if excluding {
			p = &sample.Excluding{Picker: p, Of: func(int, int) *sample.EdgeSet { return &gone }}
		}
		c := sample.Config{Picker: p, Hops: 2, Seed: 9, Disjoint: true}
		seeds := sample.Seeds{IDs: []int32{int32(nodes / 2), 0}, Times: []int64{until, until}}
		now, err := newSampler(t, g, c).Sample(1, 2, seeds)
		if err != nil {
			t.Fatal(err)
		}
		c.Picker = then
		before, err := newSampler(t, past, c).Sample(1, 2, seeds)
		if err != nil {
			t.Fatal(err)
		}
		got, want := treesOf(t, now), treesOf(t, before)
		for hop := range want {
			if len(got[hop]) != len(want[hop]) {
				t.Fatalf("hop %d has %d destinations, want %d", hop, len(got[hop]), len(want[hop]))
			}
			for node, picks := range want[hop] {
				was := []int64{}
				for _, e := range picks {
					was = append(was, at[e])
				}
				slices.Sort(was)
				if !slices.Equal(got[hop][node], was) {
					t.Fatalf("hop %d, node %v: edges %v, want %v", hop, node, got[hop][node], was)
				}
			}
		}
	})
}

// dstOf returns the destination of each edge.
func dstOf(g *graphops.Graph) (dst []int32) {
	for v := range g.NumNodes() {
		for range g.InDegree(int32(v)) {
			dst = append(dst, int32(v))
		}
	}
	return dst
}

// looking picks by all that a picker sees, and fails where its parts do not belong together.
type looking struct{}

func (looking) Pick(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	w, times, types := h.Weights(), h.Times(), h.Types()
	if len(w) != len(nbrs) || len(times) != len(nbrs) || len(types) != len(nbrs) {
		panic(fmt.Sprintf("%d neighbours, %d weights, %d times, %d types", len(nbrs), len(w), len(times), len(types)))
	}
	for i := range nbrs {
		if i > 0 && (times[i] < times[i-1] || times[i] == times[i-1] && h.Position(i) <= h.Position(i-1)) {
			panic("edges are not in the order of time")
		}
		if h.Float32() < w[i]/8 && types[i] != uint16(times[i]&1) {
			out = append(out, int32(i))
		}
	}
	return out
}

// What cannot be sampled is said in a sentence.
func TestSeedsAreChecked(t *testing.T) {
	g := random(40, 5, 1)
	_, times := edgeData(len(g.Indices), "", true)
	timed := g.WithEdgeData(nil, times)
	fanouts := sample.Config{Picker: sample.Fanouts{2, 2}}
	trees := fanouts
	trees.Disjoint = true
	for _, c := range []struct {
		g    *graphops.Graph
		c    sample.Config
		s    sample.Seeds
		want string
	}{
		{timed, fanouts, sample.Seeds{IDs: []int32{1}, Times: []int64{3}}, "set Disjoint"},
		{g, trees, sample.Seeds{IDs: []int32{1}, Times: []int64{3}}, "the graph's edges have none"},
		{timed, trees, sample.Seeds{IDs: []int32{1, 2}, Times: []int64{3}}, "2 seeds and 1 times"},
		{timed, trees, sample.Seeds{IDs: []int32{40}}, "seed 40 at position 0 is not a node"},
		{timed, fanouts, sample.Seeds{IDs: []int32{4, 4}}, "occurs twice"},
	} {
		if _, err := newSampler(t, c.g, c.c).Sample(0, 0, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
	frontier := sample.Config{Frontier: takesNothing{}, Hops: 1, Disjoint: true}
	if _, err := sample.New(g, frontier); err == nil || !strings.Contains(err.Error(), "no disjoint trees") {
		t.Error(err)
	}
	_, err := sample.NewCooperative(g, trees, sample.Peers{World: 1, AllToAll: func(b [][]byte) ([][]byte, error) { return b, nil }})
	if err == nil || !strings.Contains(err.Error(), "no disjoint trees") {
		t.Error(err)
	}
}

// first embeds fanouts for their number of hops, and picks by itself.
type first struct {
	sample.Fanouts
	K int
}

func (f first) Pick(_ *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	for i := range min(f.K, len(nbrs)) {
		out = append(out, int32(i))
	}
	return out
}

// A picker that embeds another one is itself: nothing takes it for the other.
func TestEmbeddedPicker(t *testing.T) {
	p := first{sample.Fanouts{5}, 1}
	if _, ok := sample.SpecOf(p); ok {
		t.Error("it is described as the fanouts that it embeds")
	}
	if c, ok := sample.ClonePicker(p).(first); !ok || c.K != 1 {
		t.Errorf("its copy is %v", sample.ClonePicker(p))
	}
	if sample.SamePicker(p, first{sample.Fanouts{5}, 9}) || !sample.SamePicker(sample.Fanouts{5}, sample.Fanouts{5}) || sample.SamePicker(sample.Fanouts{5}, sample.Fanouts{4}) {
		t.Error("pickers are compared by what they embed")
	}
	g := random(50, 8, 1)
	d, err := sample.NewDivided(divide(t, g, nil, []int{0}, 1, sample.AnswererOptions{Picker: p}), sample.Config{Picker: p})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Sample(0, 0, sample.Seeds{IDs: all(20)})
	if err != nil {
		t.Fatal(err)
	}
	if want := mustSample(t, newSampler(t, g, sample.Config{Picker: p}), 0, 0, all(20)); got.Edges() != want.Edges() || got.Edges() > 20 {
		t.Errorf("a divided graph gives %d edges, the whole one %d", got.Edges(), want.Edges())
	}
}

// A layer learns nothing of later edges from the degrees of the graph.
func TestDegreesOfTheFutureAreHidden(t *testing.T) {
	g := build(3, edge{1, 0}, edge{2, 0})
	g = g.WithEdgeData(nil, []int64{1, 100})
	s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{-1}, Disjoint: true})
	b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0}, Times: []int64{5}})
	if err != nil {
		t.Fatal(err)
	}
	x := func(c *nn.GCNConv) error {
		f := nn.NewFwd(nn.Config{})
		return nn.Try(func() { c.Forward(f, b.Blocks[0], f.Input(b.Inputs(), 1, make([]float32, b.Inputs()), nil)) })
	}
	if err := x(nn.NewGCN(1, 1)); err == nil || !strings.Contains(err.Error(), "use BatchDegrees") {
		t.Errorf("GCN on a batch of the past: %v", err)
	}
	if err := x(nn.NewGCNWith(1, 1, nn.GCNOptions{BatchDegrees: true})); err != nil {
		t.Errorf("GCN by the batch's degrees: %v", err)
	}
}

type takesNothing struct{}

func (takesNothing) PickFrontier(*sample.Hop, *graphops.Graph, []int32, func(int, []int32)) error {
	return nil
}

// NumPy computes the same digests of disjoint trees, with and without times.
func TestDigestOfTreesIsNumPys(t *testing.T) {
	testneed.NotShort(t, "it starts Python")
	python := testneed.PythonWith(t, "numpy")
	const nodes = 400
	g := random(nodes, 9, 33)
	_, times := edgeData(len(g.Indices), "", true)
	times[0], times[1] = 1<<40, -1<<40
	g = g.WithEdgeData(nil, times)
	train := sample.EpochOrder(1, 0, all(nodes))[:120]
	dir := filepath.Join(t.TempDir(), "set")
	if err := dataset.Write(dir, &dataset.Dataset{Graph: g, Splits: map[string][]int32{"train": train}, Meta: dataset.Metadata{Name: "random"}}); err != nil {
		t.Fatal(err)
	}
	when := make([]int64, nodes)
	for v := range when {
		when[v] = int64(v*v%97) - 45
	}
	when[train[0]] = -1 << 40
	var file []byte
	for _, t := range when {
		file = binary.LittleEndian.AppendUint64(file, uint64(t))
	}
	if err := os.WriteFile(filepath.Join(dir, "seed_times.i64"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, timed := range []bool{false, true} {
		name := "trees"
		if timed {
			name += "/times"
		}
		out, err := exec.Command(python, "testdata/digest.py", dir, "77", "5", "32", "4,-1,2", "0", name).CombinedOutput()
		if err != nil {
			t.Fatalf("digest.py: %v\n%s", err, out)
		}
		s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{4, -1, 2}, Seed: 77, Disjoint: true})
		d, order := sample.NewDigest(), sample.EpochOrder(77, 5, train)
		for step := 0; 32*step < len(order); step++ {
			seeds := sample.Seeds{IDs: order[32*step : min(32*step+32, len(order))]}
			for _, v := range seeds.IDs {
				if timed {
					seeds.Times = append(seeds.Times, when[v])
				}
			}
			b, err := s.Sample(5, step, seeds)
			if err != nil {
				t.Fatal(err)
			}
			d.AddBatch(b)
		}
		if got := strings.TrimSpace(string(out)); got != d.Sum() {
			t.Errorf("%s: digest %s, NumPy's %s", name, d.Sum(), got)
		}
	}
}
