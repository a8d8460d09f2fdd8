package predict_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// In a dataset with types that was not made of tables, nodes have features of their types' widths and edges features of their
// relations' widths, weights and times; answers have the bits of Infer on the dataset with the nodes appended.
func TestTypedWithoutTables(t *testing.T) {
	const users, items, fresh = 40, 25, 3
	r := rand.New(rand.NewPCG(4, 4))
	relations := []graphops.Relation{{Src: "item", Name: "like", Dst: "item"}, {Src: "item", Name: "in", Dst: "user"}, {Src: "user", Name: "knows", Dst: "user"}}
	edgeCols := []int{2, 0, 3}
	type edge struct {
		a, b, kind int
		weight     float32
		time       int64
		x          []float32
	}
	var list []edge
	for range 320 {
		e := edge{kind: r.IntN(3), weight: float32(1 + r.IntN(4)), time: int64(r.IntN(9))}
		e.a, e.b = r.IntN(items), r.IntN(items)
		if e.kind > 0 {
			e.b = r.IntN(users)
		}
		if e.kind == 2 {
			e.a = r.IntN(users)
		}
		for range edgeCols[e.kind] {
			e.x = append(e.x, float32(r.NormFloat64()))
		}
		list = append(list, e)
	}
	features := func(n, cols int) *dataset.Matrix {
		m := &dataset.Matrix{Rows: n, Cols: cols, F32: make([]float32, n*cols)}
		for i := range m.F32 {
			m.F32[i] = float32(r.NormFloat64())
		}
		return m
	}
	xi, xu := features(items, 4), features(users, 7)
	build := func(items, users int) *gnb.Dataset {
		s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "item", Count: items}, {Name: "user", Count: users}}, Relations: relations}
		var src, dst []int32
		var d graphops.EdgeData
		wide := &graphops.EdgeFeatures{Cols: 3}
		for _, e := range list {
			a, b := e.a, e.b
			if a >= []int{items, items, users}[e.kind] || b >= []int{items, users, users}[e.kind] {
				continue
			}
			if e.kind == 2 {
				a += items
			}
			if e.kind > 0 {
				b += items
			}
			src, dst = append(src, int32(a)), append(dst, int32(b))
			d.Types, d.Weights, d.Times = append(d.Types, uint16(e.kind)), append(d.Weights, e.weight), append(d.Times, e.time)
			wide.F32 = append(wide.F32, append(slices.Clone(e.x), make([]float32, 3-len(e.x))...)...)
		}
		d.Features = wide
		g, err := graphops.FromEdgesWith(items+users, src, dst, d, graphops.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
			t.Fatal(err)
		}
		by := make([]*graphops.EdgeFeatures, len(relations))
		for k, cols := range edgeCols {
			if cols == 0 {
				continue
			}
			by[k] = &graphops.EdgeFeatures{Cols: cols, F32: []float32{}}
			for e, kind := range g.EdgeTypes {
				if int(kind) == k {
					by[k].F32 = append(by[k].F32, g.EdgeFeatures.F32[3*e:3*e+cols]...)
				}
			}
		}
		x, err := graphops.EdgeFeaturesByRelation(g.EdgeTypes, by)
		if err != nil {
			t.Fatal(err)
		}
		ds := &gnb.Dataset{Graph: g.WithEdgeData(x, g.EdgeTimes), Labels: make([]int32, items+users), Splits: map[string][]int32{}}
		ds.NodeFeatures = []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: items, Cols: 4, F32: xi.F32[:4*items]}}, {Dense: &dataset.Matrix{Rows: users, Cols: 7, F32: xu.F32[:7*users]}}}
		ds.Meta.Name, ds.Meta.NumClasses = "bazaar", 2
		for v := range ds.Labels {
			if ds.Labels[v] = int32(v % 2); v < items {
				ds.Labels[v] = -1
			} else {
				split := []string{"train", "val", "test"}[v%3]
				ds.Splits[split] = append(ds.Splits[split], int32(v))
			}
		}
		return ds
	}
	old, all := build(items-fresh, users-fresh), build(items, users)
	var a predict.Additions
	var news []int32
	for i := range fresh {
		u, v := users-fresh+i, items-fresh+i
		a.Nodes = append(a.Nodes, predict.Node{ID: fmt.Sprint("new", u), Type: "user", Features: xu.Row(u)}, predict.Node{ID: fmt.Sprint("new", v), Type: "item", Features: xi.Row(v)})
		news = append(news, int32(items+u), int32(v))
	}
	for _, e := range list {
		name := func(v, of int) (string, bool) {
			if v < of-fresh {
				return fmt.Sprint(v), false
			}
			return fmt.Sprint("new", v), true
		}
		from, to := []int{items, items, users}[e.kind], []int{items, users, users}[e.kind]
		src, isNew := name(e.a, from)
		dst, also := name(e.b, to)
		if isNew || also {
			a.Edges = append(a.Edges, predict.Edge{Source: src, Target: dst, Relation: relations[e.kind].String(), Weight: &e.weight, Time: &e.time, Features: e.x})
		}
	}
	for name, c := range map[string]struct {
		model gnb.AnyModel
		o     gnb.ModelOptions
	}{
		"gatv2": {gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}}, "rgcn": {gnb.RGCN, gnb.ModelOptions{Hidden: 16}}, "hgt": {gnb.HGT, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"gcn": {gnb.GCN, gnb.ModelOptions{Hidden: 16}},
	} {
		t.Run(name, func(t *testing.T) {
			run := train(t, old, c.model, c.o)
			p := open(t, run, old, predict.Options{})
			got, err := p.New(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "new users and items", got, infer(t, run, all, 0), news)
			known, err := p.Nodes(t.Context(), "user:3", "item:3", "30")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "known users and items", known, infer(t, run, old, 0), []int32{items - fresh + 3, 3, 30})
		})
	}
}

// Edges of weight 0 are none, as for Infer.
func TestZeroWeights(t *testing.T) {
	w := newWorld(t, worldOptions{weights: true})
	for _, ds := range []*gnb.Dataset{w.old, w.all} {
		weights := slices.Clone(ds.Graph.EdgeWeights)
		for v := range int32(oldNodes) {
			for i, u := range ds.Graph.InNeighbors(v) {
				if (u+v)%5 == 0 && u < oldNodes {
					weights[ds.Graph.Indptr[v]+int64(i)] = 0
				}
			}
		}
		ds.Graph = ds.Graph.WithEdgeWeights(weights)
	}
	run := train(t, w.old, gnb.GCN, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, w.old, predict.Options{})
	a, err := p.New(t.Context(), w.added)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "new nodes", a, infer(t, run, w.all, 0), w.news)
}

// A node that can have several labels gets the probability of each.
func TestSeveralLabels(t *testing.T) {
	w := newWorld(t, worldOptions{})
	for _, ds := range []*gnb.Dataset{w.old, w.all} {
		ds.MultiLabels = &dataset.Multi{Rows: ds.Nodes(), Cols: 3, Data: make([]int8, 3*ds.Nodes())}
		for i := range ds.MultiLabels.Data {
			ds.MultiLabels.Data[i] = int8(i * 7 % 5 % 2)
		}
		ds.Labels, ds.Meta.NumClasses, ds.Meta.ClassNames = nil, 0, nil
	}
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, w.old, predict.Options{})
	a, err := p.New(t.Context(), w.added)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "new nodes", a, infer(t, run, w.all, 0), w.news)
	probabilities, of := a.Probabilities(0), a.Of(0)
	for k, z := range a.Rows.Row(0) {
		if p := probabilities[k]; (p > .5) != (z > 0) || of.Probabilities[a.Columns[k]] != p {
			t.Errorf("label %s has the logit %v and the probability %v", a.Columns[k], z, p)
		}
	}
	if class, _ := a.Class(0); a.Kind != predict.Labels || class != "" || of.Class != "" {
		t.Errorf("answers of kind %s have the class %q", a.Kind, class)
	}
}

// Embeddings that were learned by walks are answers too.
func TestWalkEmbeddings(t *testing.T) {
	w := newWorld(t, worldOptions{})
	var o links.EmbedOptions
	o.Quiet, o.Threads, o.Workers, o.Epochs, o.Dim, o.Length, o.PerNode, o.RunDir = true, 1, 1, 1, 8, 4, 1, t.TempDir()
	run, err := links.Embed(t.Context(), w.old, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := links.Embeddings(run)
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, run, w.old, predict.Options{})
	a, err := p.Nodes(t.Context(), "3", "30")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "known nodes", a, want, []int32{3, 30})
}

// A call allocates nothing of the graph's size.
func TestCallsAllocateNothingOfTheGraphsSize(t *testing.T) {
	const nodes = 400_000
	src, dst := make([]int32, nodes), make([]int32, nodes)
	for v := range int32(nodes) {
		src[v], dst[v] = v, (v+1)%nodes
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: g, Features: &dataset.Matrix{Rows: nodes, Cols: 2, F32: make([]float32, 2*nodes)}, Labels: make([]int32, nodes), Splits: map[string][]int32{"train": {0, 1, 2, 3}}}
	ds.Meta.Name, ds.Meta.NumClasses, ds.Meta.Undirected = "ring", 2, true
	run := train(t, ds, gnb.GCN, gnb.ModelOptions{Hidden: 8})
	p := open(t, run, ds, predict.Options{Threads: 1})
	a := predict.Additions{Nodes: []predict.Node{{ID: "n", Features: []float32{1, 2}}}, Edges: []predict.Edge{{Source: "n", Target: "5"}}}
	call := func() {
		if _, err := p.Numbered(t.Context(), 7, nodes/2); err != nil {
			t.Fatal(err)
		}
		if _, err := p.New(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		call()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 20; each > nodes/4 {
		t.Errorf("a call allocates %d bytes, on a graph of %d nodes", each, nodes)
	}
}
