package sample_test

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// typedGraph is a random graph whose edges have the given number of relations, with parallel edges of
// different relations.
func typedGraph(t testing.TB, nodes, relations int) *graphops.Graph {
	t.Helper()
	g := random(nodes, 24, 33)
	src, dst, types := []int32{}, []int32{}, []uint16{}
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "node", Count: nodes}}}
	for r := range relations {
		schema.Relations = append(schema.Relations, graphops.Relation{Src: "node", Name: fmt.Sprint("r", r), Dst: "node"})
	}
	for v := range int32(nodes) {
		for i, u := range g.InNeighbors(v) {
			for k := range 1 + i%2 {
				src, dst, types = append(src, u), append(dst, v), append(types, uint16((int(u)*7+int(v)+k)%relations))
			}
		}
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(schema, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Each node takes, of each relation, as many edges as its fanout, distinct ones, and all if there are no
// more.
func TestRelationFanoutsTakeTheirFanouts(t *testing.T) {
	g := typedGraph(t, 300, 4)
	f, err := sample.NewRelationFanouts(g.Schema, sample.Fanouts{3, 2}, map[string]sample.Fanouts{"r1": {0, -1}, "node:r2:node": {-1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	b := mustSample(t, newSampler(t, g, sample.Config{Picker: f, Seed: 4}), 1, 2, []int32{5, 9, 200, 31})
	defer b.Release()
	for hop, of := range [][]int{{3, 0, -1, 3}, {2, -1, 0, 2}} {
		k := b.Blocks[1-hop]
		types, some := k.EdgeTypes(), false
		for d := range k.NumDst {
			all, got, seen := make([]int, 4), make([]int, 4), map[int64]bool{}
			v := k.DstID(d)
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				all[g.EdgeTypes[e]]++
			}
			for e := k.Indptr()[d]; e < k.Indptr()[d+1]; e++ {
				got[types[e]]++
				if pos := k.Pos(e); seen[pos] || g.EdgeTypes[pos] != types[e] || g.Indices[pos] != k.SrcID(int(k.Indices()[e])) {
					t.Errorf("hop %d, node %d: edge at %d is repeated, or has another type or source", hop, v, pos)
				} else {
					seen[pos] = true
				}
			}
			for r, n := range of {
				want := min(n, all[r])
				if n < 0 {
					want = all[r]
				}
				some = some || want < all[r]
				if got[r] != want {
					t.Errorf("hop %d, node %d: %d of %d edges of relation %d, want %d", hop, v, got[r], all[r], r, want)
				}
			}
		}
		if !some {
			t.Error("no node had more edges than its fanouts")
		}
	}
}

// With one relation, and without types, the picks are those of Fanouts.
func TestOneRelationIsFanouts(t *testing.T) {
	g := typedGraph(t, 300, 1)
	for _, h := range []*graphops.Graph{g, g.Homogeneous()} {
		a := mustSample(t, newSampler(t, h, sample.Config{Picker: sample.Fanouts{4, 3}, Seed: 4}), 0, 0, all(40))
		b := mustSample(t, newSampler(t, h, sample.Config{Picker: &sample.RelationFanouts{All: sample.Fanouts{4, 3}}, Seed: 4}), 0, 0, all(40))
		if !slices.Equal(sample.EncodePicks(a), sample.EncodePicks(b)) {
			t.Error("fanouts by relation pick otherwise than fanouts")
		}
		a.Release()
		b.Release()
	}
}

// relationDigest is the digest of sampling a typed graph on a number of workers and threads.
func relationDigest(t *testing.T, g *graphops.Graph, train []int32, p sample.Picker, world, threads int) string {
	t.Helper()
	const seed, epoch, batch = 77, 3, 64
	d, order := sample.NewDigest(), sample.EpochOrder(seed, epoch, train)
	for step := 0; step*batch < len(order); step++ {
		seeds := order[step*batch : min((step+1)*batch, len(order))]
		var picks [][]byte
		for r := range world {
			s := newSampler(t, g, sample.Config{Picker: p, Seed: seed, Threads: threads})
			lo, hi := sample.Share(len(seeds), r, world)
			b := mustSample(t, s, epoch, step, seeds[lo:hi])
			picks = append(picks, sample.EncodePicks(b))
			b.Release()
		}
		if err := d.AddStep(sample.Seeds{IDs: seeds}, picks); err != nil {
			t.Fatal(err)
		}
	}
	return d.Sum()
}

// The digest of a typed graph is the same for 1, 2 and 4 workers and any number of threads, depends on the
// types, and is NumPy's, which reads the dataset's directory alone.
func TestTypedDigest(t *testing.T) {
	g := typedGraph(t, 500, 5)
	train := sample.EpochOrder(1, 0, all(500))[:200]
	by := &sample.RelationFanouts{All: sample.Fanouts{3, 2}, By: map[int]sample.Fanouts{1: {0, -1}, 4: {5, 1}}}
	pickers := map[string]sample.Picker{"relations/1:0,-1/4:5,1": by, "": sample.Fanouts{3, 2}, "labor/1": sample.Labor{Fanouts: sample.Fanouts{3, 2}}}
	for name, l := range map[string]*sample.Labor{"": {}, "/kappa:3/layers": {BatchDependency: 3, LayerDependency: true}, "/poisson": {Poisson: true}} {
		pickers["relations/1:0,-1/4:5,1/labor"+name] = &sample.RelationFanouts{All: by.All, By: by.By, Labor: l}
	}
	sums := map[string]string{}
	for name, p := range pickers {
		sums[name] = relationDigest(t, g, train, p, 1, 1)
		for _, world := range []int{1, 2, 4} {
			if got := relationDigest(t, g, train, p, world, 3); got != sums[name] {
				t.Errorf("%q: on %d workers and 3 threads the digest is %s, on one %s", name, world, got, sums[name])
			}
		}
	}
	other := slices.Clone(g.EdgeTypes)
	for i := range other {
		other[i] = 2
	}
	h, err := g.WithTypes(g.Schema, other)
	if err != nil {
		t.Fatal(err)
	}
	if a := relationDigest(t, h, train, sample.Fanouts{3, 2}, 1, 1); a == sums[""] || a == relationDigest(t, g.Homogeneous(), train, sample.Fanouts{3, 2}, 1, 1) {
		t.Error("the digest does not depend on types")
	}

	testneed.NotShort(t, "it starts Python")
	if testneed.UnderRace() {
		return // Python has no races of ours
	}
	python := testneed.PythonWith(t, "numpy")
	dir := filepath.Join(t.TempDir(), "set")
	if err := dataset.Write(dir, &dataset.Dataset{Graph: g, Splits: map[string][]int32{"train": train}, Meta: dataset.Metadata{Name: "typed"}}); err != nil {
		t.Fatal(err)
	}
	names, args := slices.Sorted(maps.Keys(pickers)), []string{"testdata/digest.py"}
	for i, name := range names {
		if i > 0 {
			args = append(args, "--")
		}
		args = append(args, dir, "77", "3", "64", "3,2", "0")
		if name != "" {
			args = append(args, name)
		}
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	got := strings.Fields(string(out))
	if err != nil || len(got) != len(names) {
		t.Fatalf("digest.py: %v\n%s", err, out)
	}
	for i, name := range names {
		if got[i] != sums[name] {
			t.Errorf("%q: NumPy's digest is %s, ours %s", name, got[i], sums[name])
		}
	}
}

// Excluding shows a node's remaining edges with their types.
func TestExcludingTypedEdges(t *testing.T) {
	g := typedGraph(t, 200, 3)
	var src, dst []int32
	for _, u := range g.InNeighbors(7)[:4] {
		src, dst = append(src, u), append(dst, 7)
	}
	gone := sample.NewEdgeSet(src, dst, false)
	p := &sample.Excluding{Picker: &sample.RelationFanouts{All: sample.Fanouts{1}, By: map[int]sample.Fanouts{1: {-1}}}, Of: func(int, int) *sample.EdgeSet { return gone }}
	b := mustSample(t, newSampler(t, g, sample.Config{Picker: p, Seed: 1}), 0, 0, []int32{7})
	defer b.Release()
	want, got := make([]int, 3), make([]int, 3)
	for e := g.Indptr[7]; e < g.Indptr[8]; e++ {
		if !gone.Has(g.Indices[e], 7) {
			want[g.EdgeTypes[e]]++
		}
	}
	want[0], want[2] = min(want[0], 1), min(want[2], 1)
	k := b.Blocks[0]
	for e, r := range k.EdgeTypes() {
		got[r]++
		if gone.Has(k.SrcID(int(k.Indices()[e])), 7) {
			t.Error("an excluded edge was picked")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("picked %v edges by relation, want %v", got, want)
	}
}

// A set of edges of some relations leaves those of other relations between the same nodes.
func TestExcludingEdgesOfRelations(t *testing.T) {
	g := typedGraph(t, 200, 3)
	var src, dst []int32
	for _, u := range g.InNeighbors(7) {
		src, dst = append(src, u), append(dst, 7)
	}
	gone := sample.NewEdgeSet(src, dst, false).OfRelations(2, 1)
	if !gone.HasOf(src[0], 7, 1) || !gone.HasOf(src[0], 7, 2) || gone.HasOf(src[0], 7, 0) || !gone.Has(src[0], 7) || gone.OfRelations().Has(src[0], 7) {
		t.Error("the set has edges of other relations, or not those of its own")
	}
	p := &sample.Excluding{Picker: sample.Fanouts{-1}, Of: func(int, int) *sample.EdgeSet { return gone }}
	b := mustSample(t, newSampler(t, g, sample.Config{Picker: p, Seed: 1}), 0, 0, []int32{7})
	defer b.Release()
	want := 0
	for e := g.Indptr[7]; e < g.Indptr[8]; e++ {
		if g.EdgeTypes[e] == 0 {
			want++
		}
	}
	for _, r := range b.Blocks[0].EdgeTypes() {
		if r != 0 {
			t.Errorf("an edge of relation %d was picked", r)
		}
	}
	if got := len(b.Blocks[0].EdgeTypes()); got != want || want == 0 || want == len(src) {
		t.Errorf("%d edges were picked, want %d of %d", got, want, len(src))
	}
}

func TestRelationFanoutsRefuse(t *testing.T) {
	g := typedGraph(t, 20, 2)
	for want, by := range map[string]map[string]sample.Fanouts{
		`no relation "likes"`:                    {"likes": {1, 2}},
		"fanouts of 1 hops, but the other":       {"r1": {1}},
		"the fanout of hop 0 is -2":              {"r1": {-2, 1}},
		"fanouts of relation node:r1:node twice": {"r1": {1, 1}, "node:r1:node": {1, 1}},
	} {
		if _, err := sample.NewRelationFanouts(g.Schema, sample.Fanouts{1, 2}, by); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; it should contain %q", err, want)
		}
	}
	if _, err := sample.NewRelationFanouts(nil, sample.Fanouts{1}, nil); err == nil {
		t.Error("no schema is accepted")
	}
	if _, err := sample.New(g, sample.Config{Picker: &sample.RelationFanouts{All: sample.Fanouts{1}, By: map[int]sample.Fanouts{-1: {1}}}}); err == nil || !strings.Contains(err.Error(), "relation -1") {
		t.Errorf("the error is %v", err)
	}
}
