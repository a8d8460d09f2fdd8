package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
)

// plantedTypes is a graph of items and users in which the class of an item shows only in the relation of its
// users: a user who likes an item has its class's features, and one who dislikes it those of the next class.
func plantedTypes(t testing.TB, items, users, classes int) (g *graphops.Graph, x []float32, labels []int32) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	n := items + users
	labels = make([]int32, n)
	for v := range labels {
		labels[v] = int32(r.IntN(classes))
	}
	var src, dst []int32
	var types []uint16
	for v := range items {
		for range 12 {
			u, kind := int32(items+r.IntN(users)), uint16(r.IntN(2))
			if labels[u] == (labels[v]+int32(kind))%int32(classes) {
				src, dst, types = append(src, u, int32(v)), append(dst, int32(v), u), append(types, kind, kind+2)
			}
		}
	}
	x = make([]float32, n*classes)
	for v := range n {
		if v >= items {
			x[v*classes+int(labels[v])] = 1
			labels[v] = -1 // only items have labels
		} else {
			x[v*classes] = 1
		}
	}
	g, err := graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "item", Count: items}, {Name: "user", Count: users}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "likes", Dst: "item"},
				{Src: "user", Name: "dislikes", Dst: "item"},
				{Src: "item", Name: "rev_likes", Dst: "user"},
				{Src: "item", Name: "rev_dislikes", Dst: "user"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, x, labels
}

func typedModels(s ModelConfig) map[string]Model {
	bases, rich := s, s
	bases.Bases = 2
	rich.Norm, rich.Residual, rich.InputDropout = "layer", true, 0.2
	return map[string]Model{"rgcn": NewRGCNModel(s), "rgcn bases": NewRGCNModel(bases), "rgcn rich": NewRGCNModel(rich), "hgt": NewHGTModel(s)}
}

// The whole graph at once, layer by layer in parts, and batches that take all neighbours give the same bits, with
// and without dropout.
func TestThreeWaysAgreeOnTypes(t *testing.T) {
	t.Parallel()
	const classes = 4
	g, x, _ := plantedTypes(t, 120, 90, classes)
	n := g.NumNodes()
	for name, m := range typedModels(ModelConfig{In: classes, Hidden: 16, Out: classes, Layers: 2, Heads: 2, Dropout: 0.4, Schema: g.Schema}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustCollect(t, m).Init(2)
			for _, train := range []bool{false, true} {
				c := Config{Train: train, Seed: 3, Epoch: 1, Step: 4}
				whole := NewFwd(c)
				full := Forward(m, whole, FullGraph(g, 2), whole.Input(n, classes, x, &Space{})).Data()
				if !train {
					got, cols, err := LayerWise(m, NewFwd(Config{}), g, x, classes)
					if err != nil || cols != classes {
						t.Fatalf("layer-wise: %d columns, %v", cols, err)
					}
					expect.SameBits(t, "layer-wise", full, got)
				}
				seeds := []int32{199, 0, 17, 110, 3}
				b := batch(t, g, sample.Fanouts{-1, -1}, 0, seeds)
				f, ids := NewFwd(c), b.InputIDs()
				y := Forward(m, f, b.Blocks, f.Input(len(ids), classes, gather(x, classes, ids), tensor.SrcSpace(b.Blocks[0])))
				expect.SameBits(t, "sampled", gather(full, classes, seeds), y.Data())
			}
		})
	}
}

// Trained on sampled batches, models over typed graphs learn what a model that ignores the relations cannot.
func TestTypedModelsLearnRelations(t *testing.T) {
	t.Parallel()
	const classes, items = 4, 400
	g, x, labels := plantedTypes(t, items, 300, classes)
	s := ModelConfig{In: classes, Hidden: 16, Out: classes, Layers: 1, Heads: 2, Schema: g.Schema}
	accuracy := func(m Model) float64 {
		p := mustCollect(t, m)
		p.Init(1)
		sampler, err := sample.New(g, sample.Config{Picker: sample.Fanouts{5}, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		adam, f := optim.NewAdam(optim.AdamOptions{LR: 0.02}), NewFwd(Config{})
		for step := range 60 {
			seeds, want := make([]int32, 100), make([]int32, 100)
			for i := range seeds {
				seeds[i] = int32((step*100 + i) % 300) // the last hundred items are for the test
				want[i] = labels[seeds[i]]
			}
			b, err := sampler.Sample(step/3, step, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			f.Reset(Config{Train: true, Seed: 1, Step: step})
			ids := b.InputIDs()
			l := CrossEntropy(Forward(m, f, b.Blocks, f.Input(len(ids), classes, gather(x, classes, ids), tensor.SrcSpace(b.Blocks[0]))), want)
			p.ZeroGrad()
			l.Backward()
			adam.Step(p.Flat(), p.Grad(), 1/float32(l.Weight))
		}
		y, cols, err := LayerWise(m, f, g, x, classes)
		if err != nil {
			t.Fatal(err)
		}
		right := 0
		for v := 300; v < items; v++ {
			if Argmax(y[v*cols:(v+1)*cols]) == int(labels[v]) {
				right++
			}
		}
		return float64(right) / 100
	}
	plain := accuracy(NewSAGEModel(s))
	for name, m := range typedModels(s) {
		if name == "rgcn rich" {
			continue
		}
		if got := accuracy(m); got < 0.9 || got < plain+0.1 {
			t.Errorf("%s has an accuracy of %.2f, and GraphSAGE, which ignores relations, %.2f", name, got, plain)
		}
	}
	t.Logf("GraphSAGE: %.2f", plain)
}

// Without a schema, or with sizes that do not fit, models are refused.
func TestTypedModelsMisuse(t *testing.T) {
	t.Parallel()
	s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a", Count: 1}}, Relations: []graphops.Relation{{Src: "a", Name: "r", Dst: "a"}}}
	for name, run := range map[string]func(){
		"rgcn without schema": func() { NewRGCNModel(ModelConfig{In: 1, Hidden: 1, Out: 1, Layers: 1}) },
		"hgt without schema":  func() { NewHGTModel(ModelConfig{In: 1, Hidden: 1, Out: 1, Layers: 1}) },
		"hgt heads":           func() { NewHGTModel(ModelConfig{In: 1, Hidden: 3, Heads: 2, Out: 1, Layers: 1, Schema: s}) },
		"bases":               func() { NewRGCNModel(ModelConfig{In: 1, Hidden: 3, Bases: -1, Out: 1, Layers: 1, Schema: s}) },
		"layers":              func() { NewHGTModel(ModelConfig{In: 1, Hidden: 3, Out: 1, Schema: s}) },
		"columns":             func() { NewRGCNModel(ModelConfig{Hidden: 3, Out: 1, Layers: 1, Schema: s}) },
	} {
		if Try(run) == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}
