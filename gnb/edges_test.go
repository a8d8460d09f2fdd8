package gnb_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// signed returns a dataset without edges. Each node has a sign, which its features say, and a class that does not depend on it. of are
// the nodes by sign.
func signed(name string, nodes int, r *rand.Rand) (ds *gnb.Dataset, of [2][]int32) {
	ds = &gnb.Dataset{
		Features: &dataset.Matrix{Rows: nodes, Cols: 2, F32: make([]float32, 2*nodes)}, Labels: make([]int32, nodes),
		Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: name, NumClasses: 2},
	}
	for v := range nodes {
		sign := r.IntN(2)
		of[sign] = append(of[sign], int32(v))
		ds.Features.F32[2*v+sign] = 1
		ds.Labels[v] = int32(r.IntN(2))
		split := []string{"train", "train", "val", "test"}[v%4]
		ds.Splits[split] = append(ds.Splits[split], int32(v))
	}
	return ds, of
}

// trusted returns a dataset in which the features of edges say whom to believe: a node's class is the
// sign that its trusted neighbours have, and as many others have the opposite sign.
func trusted(t *testing.T, nodes int) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	ds, of := signed("trusted", nodes, r)
	x := &graphops.EdgeFeatures{Cols: 2}
	var src, dst []int32
	for v, class := range ds.Labels {
		for i := range 8 {
			from := of[i%2]
			src, dst = append(src, from[r.IntN(len(from))]), append(dst, int32(v))
			belief := float32(-1)
			if i%2 == int(class) {
				belief = 1
			}
			x.F32 = append(x.F32, belief, r.Float32())
		}
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Features: x}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	ds.Graph = g
	return ds
}

// GATv2 learns from the features of edges what the graph without them does not say; one and two
// workers, the dataset in memory and in a directory, and features on disk give the same training.
func TestTrainWithEdgeFeatures(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := trusted(t, 800)
	o := gnb.TrainOptions{
		LaunchOptions:    gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 3, CheckpointEvery: -1},
		ModelOptions:     gnb.ModelOptions{Layers: 1, Hidden: 16, Heads: 2},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{6}},
		OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 25, LR: 0.03},
	}
	one := trainModel(t, ds, gnb.GATv2, o)
	if got := one.Value("test_accuracy"); got < 0.9 {
		t.Errorf("with features of edges the test accuracy is %v; want at least 0.9", got)
	}
	bare := *ds
	bare.Graph = ds.Graph.WithEdgeData(nil, nil)
	if got := trainModel(t, &bare, gnb.GATv2, o).Value("test_accuracy"); got > 0.65 {
		t.Errorf("without features of edges the test accuracy is %v; the graph alone does not give the class", got)
	}
	dir := filepath.Join(t.TempDir(), "trusted")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	opened := load(t, dir)
	for name, features := range map[string]string{"a directory": "memory", "features on disk": "disk"} {
		o := o
		o.Features = features
		run := trainModel(t, opened, gnb.GATv2, o)
		if !bytes.Equal(weights(t, one), weights(t, run)) || run.Value("test_accuracy") != one.Value("test_accuracy") {
			t.Errorf("training from %s gives other weights or another accuracy than from memory", name)
		}
	}
	o.Epochs, o.Digest, o.Eval = 1, true, "none"
	one = trainModel(t, ds, gnb.GATv2, o)
	o.Workers = 2
	sameAs(t, one, trainModel(t, opened, gnb.GATv2, o))
	o.Cooperative = true
	sameAs(t, one, trainModel(t, ds, gnb.GATv2, o))
}

// GINE, GatedGCN and PNA learn from the features of edges too, in the whole arrangement of GNN+; one worker and two have the same
// weights to the bit, and a PNA scales by the degrees of the dataset.
func TestTrainModelsWithEdgeFeatures(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := trusted(t, 800)
	o := gnb.TrainOptions{
		LaunchOptions:    gnb.LaunchOptions{Workers: 1, VirtualRanks: 2, Threads: 1, Seed: 3, CheckpointEvery: -1},
		ModelOptions:     gnb.ModelOptions{Layers: 1, Hidden: 16, Norm: "layer", Residual: true, FeedForward: true},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{6}},
		OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 25, LR: 0.01},
	}
	for _, m := range []gnb.AnyModel{gnb.GINE, gnb.GatedGCN, gnb.PNA} {
		one := trainModel(t, ds, m, o)
		if got := one.Value("test_accuracy"); got < 0.9 {
			t.Errorf("%s has the test accuracy %v; want at least 0.9", m.Name(), got)
		}
		two := o
		two.Workers, two.VirtualRanks = 2, 1
		if run := trainModel(t, ds, m, two); !bytes.Equal(weights(t, one), weights(t, run)) {
			t.Errorf("%s: two workers have other weights than one", m.Name())
		}
		if got, want := one.Result.Model.Config.LogDegree, math.Log(9); m == gnb.AnyModel(gnb.PNA) && math.Abs(got-want) > 1e-12 {
			t.Errorf("the mean of log(d+1) is %v, and each node has 8 in-edges: want %v", got, want)
		}
	}
}

// Options that a model has no use for are refused before the run.
func TestOptionsOfPlusModels(t *testing.T) {
	t.Parallel()
	ds := load(t, "karate")
	for want, c := range map[string]struct {
		m gnb.AnyModel
		o gnb.ModelOptions
	}{
		"model gcn has no feed-forward part; leave FeedForward (--feed-forward) out":  {gnb.GCN, gnb.ModelOptions{FeedForward: true}},
		"model gine has an arrangement of its own; leave Arrangement (--arrangement)": {gnb.GINE, gnb.ModelOptions{Arrangement: nn.Strong}},
		"model pna has no jumping knowledge; leave JK (--jk) out":                     {gnb.PNA, gnb.ModelOptions{JK: "cat"}},
	} {
		if _, err := gnb.Train(t.Context(), ds, c.m, gnb.TrainOptions{ModelOptions: c.o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A network that needs features of edges says so on a dataset that has none.
func TestEdgeFeaturesMissing(t *testing.T) {
	ds := trusted(t, 200)
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Layers: 1, Dropout: 0.5, Hidden: 8}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Workers: 1}}
	run := trainModel(t, ds, gnb.GATv2, o)
	bare := *ds
	bare.Graph = ds.Graph.WithEdgeData(nil, nil)
	_, err := gnb.Infer(t.Context(), run, &bare, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{})
	if err == nil || !strings.Contains(err.Error(), "the edges need 2 features, but those of the graph have none") {
		t.Errorf("the error is %v; it should say that the edges have no features", err)
	}
}
