package runs_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/expect"
)

// pygTrained are the models that are trained and loaded into PyG; edges have "features" or "weights" in some.
var pygTrained = map[string]struct {
	model gnb.AnyModel
	edges string
	o     gnb.TrainOptions
}{
	"sage":          {gnb.SAGE, "", gnb.TrainOptions{}},
	"sage-batch-3":  {gnb.SAGE, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Norm: "batch", Layers: 3}}},
	"sage-jk-cat":   {gnb.SAGE, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{JK: "cat", Dropout: 0.5}}},
	"gcn":           {gnb.GCN, "", gnb.TrainOptions{}},
	"gcn-weighted":  {gnb.GCN, "weights", gnb.TrainOptions{}},
	"gcn-layer-max": {gnb.GCN, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Norm: "layer", Dropout: 0.5, JK: "max"}}},
	"gat":           {gnb.GAT, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 4, Dropout: 0.5}}},
	"gat-batch-3":   {gnb.GAT, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 2, Dropout: 0.5, Norm: "batch", Layers: 3}}},
	"gat-jk-lstm":   {gnb.GAT, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{JK: "lstm", Dropout: 0.5}}},
	"gatv2":         {gnb.GATv2, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 4, Dropout: 0.5}}},
	"gatv2-edges":   {gnb.GATv2, "features", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 2, Dropout: 0.5}}},
	"gin":           {gnb.GIN, "", gnb.TrainOptions{}},
	"gin-layer":     {gnb.GIN, "", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Norm: "layer", Dropout: 0.5}}},
}

// pygCase is a model in testdata/pyg.json; its weights are testdata/pyg/NAME.safetensors.
type pygCase struct {
	Model  runs.ModelInfo
	Lines  string    // that PyG has run, with the weights "best.safetensors"
	Logits []float64 // that PyG has computed
}

// pygData is the dataset of a case, of 50 nodes.
func pygData(t *testing.T, edges string) *gnb.Dataset {
	t.Helper()
	const n, cols = 50, 6
	draw := rand.New(rand.NewPCG(11, 3))
	var src, dst []int32
	for v := range int32(n) {
		for range draw.IntN(6) { // some nodes have no in-edges
			if u := int32(draw.IntN(n)); u != v {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	var data graphops.EdgeData
	switch edges {
	case "features":
		data.Features = &graphops.EdgeFeatures{Cols: 2}
		for range 2 * len(src) {
			data.Features.F32 = append(data.Features.F32, float32(draw.IntN(17)-8)/8)
		}
	case "weights":
		for range src {
			data.Weights = append(data.Weights, float32(1+draw.IntN(16))/8)
		}
	}
	g, err := graphops.FromEdgesWith(n, src, dst, data, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: g, Features: &dataset.Matrix{Rows: n, Cols: cols}, Splits: map[string][]int32{}}
	ds.Meta.Name, ds.Meta.NumClasses = "pyg", 3
	for v := range int32(n) {
		row := make([]float32, cols)
		for j := range row {
			row[j] = float32(draw.IntN(33)-16) / 8
		}
		ds.Features.F32 = append(ds.Features.F32, row...)
		ds.Labels = append(ds.Labels, int32(nn.Argmax(row[:3])))
		split := []string{"train", "train", "val"}[v%3]
		ds.Splits[split] = append(ds.Splits[split], v)
	}
	return ds
}

// The lines of ModelInfo.PyG are those that PyG has run with a trained run's weights, and a network that loads the same
// file predicts what PyG has predicted: see pygrun_test.go, which writes testdata/pyg.
func TestPyGPredictsTheSame(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pyg.json")
	var cases map[string]pygCase
	if err == nil {
		err = json.Unmarshal(raw, &cases)
	}
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(cases)), slices.Sorted(maps.Keys(pygTrained))) {
		t.Fatalf("pyg.json has the cases %v, %v; run make fixtures", slices.Sorted(maps.Keys(cases)), err)
	}
	networks := map[string]func(nn.ModelConfig) nn.Model{
		"sage": func(s nn.ModelConfig) nn.Model { return nn.NewSAGEModel(s) }, "gcn": func(s nn.ModelConfig) nn.Model { return nn.NewGCNModel(s) },
		"gat": func(s nn.ModelConfig) nn.Model { return nn.NewGATModel(s) }, "gatv2": func(s nn.ModelConfig) nn.Model { return nn.NewGATv2Model(s) },
		"gin": func(s nn.ModelConfig) nn.Model { return nn.NewGINModel(s) },
	}
	for name, c := range cases {
		if lines, err := c.Model.PyG("best.safetensors"); err != nil || lines != c.Lines {
			t.Errorf("%s: the lines are now\n%s, %v; PyG has run\n%s; run make fixtures", name, lines, err, c.Lines)
		}
		dir := t.TempDir()
		weights, err := os.ReadFile(filepath.Join("testdata/pyg", name+".safetensors"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "best.safetensors"), weights, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		ds, net := pygData(t, pygTrained[name].edges), networks[c.Model.Name](c.Model.Config)
		if err := (&runs.Run{Dir: dir}).Load(net); err != nil {
			t.Fatal(err)
		}
		got, _, err := nn.LayerWise(net, nn.NewFwd(nn.Config{Threads: 1}), ds.Graph, ds.Features.F32, ds.FeatureDim())
		if err != nil {
			t.Fatal(err)
		}
		// Sums of some dozens of products in float32, in another order than PyG's.
		expect.Near(t, name, got, c.Logits, 1e-5, 1e-5)
	}
}
