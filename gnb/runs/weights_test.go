package runs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// A trained network that is loaded outside of workers predicts what gnb.Infer does, to the bit.
func TestLoadOfARun(t *testing.T) {
	ds, err := gnb.Load(t.Context(), "planted?nodes=300&features=8&classes=3&seed=2")
	if err != nil {
		t.Fatal(err)
	}
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true, RunDir: t.TempDir()}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5, JK: "cat"}})
	if err != nil {
		t.Fatal(err)
	}
	net := nn.NewSAGEModel(run.Result.Model.Config)
	if err := run.Load(net); err != nil {
		t.Fatal(err)
	}
	got, cols, err := nn.LayerWise(net, nn.NewFwd(nn.Config{}), ds.Graph, ds.Features.F32, ds.FeatureDim())
	if err != nil {
		t.Fatal(err)
	}
	r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.Logits()
	if err != nil || cols != 3 || !slices.Equal(got, want.F32) {
		t.Errorf("a loaded network has other outputs than gnb.Infer, %v", err)
	}
	other := run.Result.Model.Config
	other.Hidden = 9
	for name, c := range map[string]struct {
		net  nn.Model
		want string
	}{
		"width": {nn.NewSAGEModel(other), "convs.0.lin_l.weight"},
		"model": {nn.NewMLPModel(run.Result.Model.Config), "lins.0.weight"},
		"nil":   {(*nn.SAGE)(nil), "network for the weights"},
	} {
		if err := run.Load(c.net); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&runs.Run{Dir: t.TempDir()}).Load(net); err == nil || !strings.Contains(err.Error(), "has no weights") {
		t.Error(err)
	}
}

// The lines for PyTorch Geometric name its class, with the model's own activation, heads and normalisation.
func TestPyGLines(t *testing.T) {
	s := nn.ModelConfig{In: 5, Hidden: 8, Out: 3, Layers: 2, Dropout: 0.5}
	attention := s
	attention.Heads, attention.EdgeDim = 4, 2
	jk := s
	jk.Norm, jk.JK = "layer", "max"
	for want, m := range map[string]runs.ModelInfo{
		"model = GraphSAGE(5, 8, 2, 3, dropout=0.5)\n":                                                      {Name: "sage", Config: s},
		`model = GAT(5, 8, 2, 3, dropout=0.5, act="elu", heads=4, v2=True, edge_dim=2)` + "\n":              {Name: "gatv2", Config: attention},
		`model = GCN(5, 8, 2, 3, dropout=0.5, norm="layer", norm_kwargs={"mode": "node"}, jk="max")` + "\n": {Name: "gcn", Config: jk},
		`model.load_state_dict(load_file("best.safetensors"))` + "\n":                                       {Name: "gin", Config: s},
	} {
		if got, err := m.PyG("best.safetensors"); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	embedded, residual, one, heads := s, s, s, attention
	embedded.Embedding, residual.Residual, one.Layers, heads.OutHeads = true, true, 1, 2
	for want, m := range map[string]runs.ModelInfo{
		"no class": {Name: "rgcn", Config: s}, "learned rows": {Name: "sage", Config: embedded}, "residual": {Name: "sage", Config: residual},
		"hidden layer": {Name: "gcn", Config: one}, "heads": {Name: "gat", Config: heads},
	} {
		if _, err := m.PyG("x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
