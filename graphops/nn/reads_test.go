package nn

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/expect"
)

// What a model says that it reads changes its output, and nothing else does.
func TestModelsReadWhatTheySay(t *testing.T) {
	const n, in = 60, 6
	s := ModelConfig{In: in, Hidden: 8, Out: 3, Layers: 2}
	plain := planted(t, n)
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a", Count: n}}, Relations: []graphops.Relation{{Name: "r", Src: "a", Dst: "a"}, {Name: "s", Src: "a", Dst: "a"}}}
	typed := s
	typed.Schema = schema
	weighted, edged := s, s
	weighted.EdgeWeights, edged.EdgeDim = true, 3
	for name, c := range map[string]struct {
		s     ModelConfig
		build func(ModelConfig) Model
	}{
		"sage":           {s, func(s ModelConfig) Model { return NewSAGEModel(s) }},
		"sage, weighted": {weighted, func(s ModelConfig) Model { return NewSAGEModel(s) }},
		"gcn":            {s, func(s ModelConfig) Model { return NewGCNModel(s) }},
		"gat":            {s, func(s ModelConfig) Model { return NewGATModel(s) }},
		"gatv2":          {s, func(s ModelConfig) Model { return NewGATv2Model(s) }},
		"gatv2, edges":   {edged, func(s ModelConfig) Model { return NewGATv2Model(s) }},
		"gin":            {s, func(s ModelConfig) Model { return NewGINModel(s) }},
		"gin, weighted":  {weighted, func(s ModelConfig) Model { return NewGINModel(s) }},
		"rgcn":           {typed, func(s ModelConfig) Model { return NewRGCNModel(s) }},
		"hgt":            {typed, func(s ModelConfig) Model { return NewHGTModel(s) }},
		"mlp":            {s, func(s ModelConfig) Model { return NewMLPModel(s) }},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.build(c.s)
			mustCollect(t, m).Init(3)
			reads := m.(Reader).Reads()
			output := func(g *graphops.Graph, x []float32, feature float32, kind uint16) []float32 {
				of := make([]uint16, g.NumEdges())
				for i := range of {
					of[i] = uint16(i) % (kind + 1)
				}
				g, err := g.WithTypes(schema, of)
				if err != nil {
					t.Fatal(err)
				}
				edge := make([]float32, 3*g.NumEdges())
				for i := range edge {
					edge[i] = feature * float32(i%5)
				}
				g = g.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: edge}, nil)
				f := NewFwd(Config{})
				return slices.Clone(Forward(m, f, FullGraph(g, 2), f.Input(n, in, x, &Space{})).Data())
			}
			x := expect.Normal(n*in, 1)
			base := output(plain, x, 1, 0)
			w := make([]float32, plain.NumEdges())
			for i := range w {
				w[i] = 1 + float32(i%4)
			}
			other := graphops.Graph{Indptr: make([]int64, n+1), Indices: []int32{}} // no edges
			for part, c := range map[string]struct {
				says bool
				got  []float32
			}{
				"features":      {reads.Features, output(plain, expect.Normal(n*in, 2), 1, 0)},
				"weights":       {reads.Weights, output(plain.WithEdgeWeights(w), x, 1, 0)},
				"edge features": {reads.EdgeFeatures, output(plain, x, 2, 0)},
				"types":         {reads.Types, output(plain, x, 1, 1)},
				"edges":         {reads.Edges, output(&other, x, 1, 0)},
			} {
				if changes := !slices.Equal(base, c.got); changes != c.says {
					t.Errorf("other %s change the output: %v; the model says that it reads them: %v", part, changes, c.says)
				}
			}
		})
	}
}

// The weighted mean is that of equal edges repeated as often as their weight says, and does not change with the unit of weights.
func TestWeightedMeanByHand(t *testing.T) {
	src, dst, times := []int32{0, 1, 2}, []int32{3, 3, 2}, []float32{1, 3, 2}
	once, err := graphops.FromWeightedEdges(4, src, dst, times, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	repeated, err := graphops.FromEdges(4, []int32{0, 1, 1, 1, 2, 2}, []int32{3, 3, 3, 3, 2, 2}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	double := once.WithEdgeWeights([]float32{4, 2, 6})
	for name, o := range map[string]SAGEOptions{"mean": {}, "sum": {Aggr: Sum}} {
		plain, w := NewSAGEWith(2, 2, o), o
		w.Weighted = true
		weighted := NewSAGEWith(2, 2, w)
		for _, c := range []*SAGEConv{plain, weighted} {
			mustCollect(t, c).Init(5)
		}
		out := func(c *SAGEConv, g *graphops.Graph) []float64 {
			f := NewFwd(Config{})
			return floats64(c.Forward(f, g.Block(), f.Input(4, 2, []float32{1, 2, 3, 5, 7, 11, 13, 17}, &Space{})).Data())
		}
		want := out(plain, repeated)
		got := out(weighted, once)
		expect.Near(t, name, floats32(got), want, 1e-6, 1e-6)
		if name == "mean" {
			expect.Near(t, "weights of another unit", floats32(out(weighted, double)), want, 1e-6, 1e-6)
		}
	}
}

func floats32(x []float64) (y []float32) {
	for _, v := range x {
		y = append(y, float32(v))
	}
	return y
}
