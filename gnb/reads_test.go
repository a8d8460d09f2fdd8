package gnb_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The table "What each model reads" of docs/models.md is what the models declare.
func TestTableOfWhatModelsRead(t *testing.T) {
	s := gnb.ModelConfig{In: 4, Hidden: 4, Out: 2, Layers: 2, EdgeDim: 1, EdgeWeights: true, Schema: &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "a", Count: 1}}, Relations: []graphops.Relation{{Name: "r", Src: "a", Dst: "a"}},
	}}
	var b strings.Builder
	b.WriteString("| `--model` | features of nodes | edges | edge weights | features of edges | types of nodes and edges | times of edges |\n|---|---|---|---|---|---|---|\n")
	for _, m := range []struct {
		name  string
		build func(gnb.ModelConfig) nn.Model
	}{
		{"sage", func(s gnb.ModelConfig) nn.Model { return nn.NewSAGEModel(s) }},
		{"gcn", func(s gnb.ModelConfig) nn.Model { return nn.NewGCNModel(s) }},
		{"gat", func(s gnb.ModelConfig) nn.Model { return nn.NewGATModel(s) }},
		{"gatv2", func(s gnb.ModelConfig) nn.Model { return nn.NewGATv2Model(s) }},
		{"gin", func(s gnb.ModelConfig) nn.Model { return nn.NewGINModel(s) }},
		{"gine", func(s gnb.ModelConfig) nn.Model { return nn.NewGINEModel(s) }},
		{"gatedgcn", func(s gnb.ModelConfig) nn.Model { return nn.NewGatedGCNModel(s) }},
		{"pna", func(s gnb.ModelConfig) nn.Model { return nn.NewPNAModel(s) }},
		{"rgcn", func(s gnb.ModelConfig) nn.Model { return nn.NewRGCNModel(s) }},
		{"hgt", func(s gnb.ModelConfig) nn.Model { return nn.NewHGTModel(s) }},
		{"mlp", func(s gnb.ModelConfig) nn.Model { return nn.NewMLPModel(s) }},
	} {
		plain := s
		plain.EdgeWeights = false
		with, without := m.build(s).(nn.Reader).Reads(), m.build(plain).(nn.Reader).Reads()
		yes := func(x bool) string { return map[bool]string{true: "yes", false: "no"}[x] }
		weights := yes(with.Weights)
		if with.Weights != without.Weights {
			weights = "with `--edge-weights`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | no |\n", m.name, yes(with.Features), yes(with.Edges), weights, yes(with.EdgeFeatures), yes(with.Types))
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "models.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.String()) {
		t.Errorf("docs/models.md lacks the table\n%s", b.String())
	}
}

// weighed returns a dataset whose nodes' classes are the sign of the heavy neighbours: light ones have the other sign. An edge in
// nine has weight 0 and comes from a node of the other sign.
func weighed(t *testing.T, nodes int, zeros bool) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	ds, of := signed("weighed", nodes, r)
	var src, dst []int32
	var w []float32
	add := func(from []int32, v int, weight float32) {
		u := from[r.IntN(len(from))]
		if weight > 0 || zeros {
			src, dst, w = append(src, u), append(dst, int32(v)), append(w, weight)
		}
	}
	for v, class := range ds.Labels {
		for range 4 {
			add(of[class], v, 5+r.Float32())
			add(of[1-class], v, 0.5+r.Float32())
		}
		add(of[1-class], v, 0)
	}
	g, err := graphops.FromWeightedEdges(nodes, src, dst, w, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	ds.Graph = g
	return ds
}

// A run on edges of weight 0 is the run without them, on one worker and on two, from memory and from a directory, and says how many
// there are.
func TestTrainLeavesOutEdgesOfWeightZero(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	with, without := weighed(t, 400, true), weighed(t, 400, false)
	o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 64}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{20, 3}, Digest: true}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never}}
	train := func(ds *gnb.Dataset, m gnb.AnyModel, workers int) (*runs.Run, []string) {
		var notes []string
		o := o
		o.Workers, o.VirtualRanks, o.RunDir = workers, 2/workers, filepath.Join(t.TempDir(), "run")
		o.Events = func(e runs.Event) {
			if e.Kind == runs.KindStart {
				notes = append(notes, e.Text)
			}
		}
		run, err := gnb.Train(t.Context(), ds, m, o)
		if err != nil {
			t.Fatal(err)
		}
		return run, notes
	}
	zeros := fmt.Sprintf("%d of ", 400)
	for _, m := range []gnb.AnyModel{gnb.SAGE, gnb.GCN} {
		want, plain := train(without, m, 1)
		if slices.ContainsFunc(plain, func(n string) bool { return strings.Contains(n, "weight 0") }) {
			t.Errorf("notes of a run without such edges: %q", plain)
		}
		for name, ds := range map[string]*gnb.Dataset{"memory": with, "directory": stored(t, with, dataset.WriteOptions{})} {
			for workers := 1; workers <= 2; workers++ {
				run, notes := train(ds, m, workers)
				for _, v := range []string{"val_accuracy", "test_accuracy"} {
					if run.Value(v) != want.Value(v) {
						t.Errorf("%s, %s, %d workers: %s is %v, want %v", m.Name(), name, workers, v, run.Value(v), want.Value(v))
					}
				}
				if a, b := weights(t, run), weights(t, want); !slices.Equal(a, b) {
					t.Errorf("%s, %s, %d workers: other weights", m.Name(), name, workers)
				}
				if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, zeros) && strings.Contains(n, "weight 0") }) {
					t.Errorf("%s, %s: the notes do not say how many edges have weight 0: %q", m.Name(), name, notes)
				}
			}
		}
	}
}

// SAGE and GIN with EdgeWeights learn what the weights say, with the same bits on any number of workers; without the option a run
// says that they have no effect.
func TestTrainWithEdgeWeights(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := weighed(t, 400, false)
	for _, m := range []gnb.AnyModel{gnb.SAGE, gnb.GIN} {
		var first []byte
		for _, workers := range []int{1, 2, 4} {
			run, err := gnb.Train(t.Context(), ds, m, gnb.TrainOptions{
				ModelOptions:     gnb.ModelOptions{EdgeWeights: true, Layers: 1},
				OptimizerOptions: gnb.OptimizerOptions{Epochs: 15, Batch: 64, LR: 0.05},
				SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{-1}},
				LaunchOptions: gnb.LaunchOptions{
					Workers:      workers,
					VirtualRanks: 4 / workers,
					Quiet:        true,
					Resume:       gnb.Never,
					RunDir:       filepath.Join(t.TempDir(), "run"),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if x := run.Value("test_accuracy"); x < 0.95 {
				t.Errorf("%s, %d workers: the accuracy is %.2f", m.Name(), workers, x)
			}
			if b := weights(t, run); first == nil {
				first = b
			} else if !slices.Equal(b, first) {
				t.Errorf("%s: %d workers have other weights than one", m.Name(), workers)
			}
			if len(run.Result.Model.Unread) != 0 {
				t.Errorf("%s with EdgeWeights does not read %q", m.Name(), run.Result.Model.Unread)
			}
			if _, err := run.Result.Model.PyG("w"); err == nil || !strings.Contains(err.Error(), "edge weights") {
				t.Errorf("%s for PyG: %v", m.Name(), err)
			}
		}
	}
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never, RunDir: filepath.Join(t.TempDir(), "run")}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	if err != nil || !slices.Equal(run.Result.Model.Unread, []string{"edge weights"}) {
		t.Errorf("%v, not read: %q", err, run.Result.Model.Unread)
	}
	for name, c := range map[string]struct {
		ds *gnb.Dataset
		m  gnb.AnyModel
	}{"does not read edge weights": {ds, gnb.GAT}, "have no weights": {load(t, "karate"), gnb.SAGE}} {
		if _, err := gnb.Train(t.Context(), c.ds, c.m, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{EdgeWeights: true, Dropout: 0.5}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// A model without types says that it does not read those of a typed dataset.
func TestUnreadTypes(t *testing.T) {
	testneed.NotShort(t, "it trains")
	ds := shop(t, 60, 40)
	for _, c := range []struct {
		m    gnb.AnyModel
		want bool
	}{{gnb.SAGE, true}, {gnb.RGCN, false}} {
		run, err := gnb.Train(t.Context(), ds, c.m, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never, RunDir: filepath.Join(t.TempDir(), "run")}, ModelOptions: gnb.ModelOptions{Embedding: 8, Dropout: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(run.Result.Model.Unread, func(s string) bool { return strings.Contains(s, "types of nodes") })
		if said != c.want {
			t.Errorf("%s does not read %q", c.m.Name(), run.Result.Model.Unread)
		}
	}
}
