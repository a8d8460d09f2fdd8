package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testneed"
)

// unknownUsers is a shop whose users have no features: what an item's users are must be learned.
func unknownUsers(t testing.TB) *gnb.Dataset {
	ds := shop(t, 600, 30)
	ds.NodeFeatures[1] = dataset.NodeFeatures{}
	return ds
}

var learning = gnb.TrainOptions{ModelOptions: gnb.ModelOptions{LearnMissing: true, Layers: 1, Hidden: 16}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{12}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 20, LR: 0.03}, LaunchOptions: gnb.LaunchOptions{Seed: 3, Threads: 1, Quiet: true}}

// Rows of the types without features are learned beside the features of other types: items are told apart by who
// likes them, which zeros do not show. Weights and rows have the same bits for any division of a step, from memory
// and from a directory, and gnb.Infer reads them.
func TestLearnMissing(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := unknownUsers(t)
	o := learning
	o.Workers, o.VirtualRanks = 1, 4
	zeros := o
	zeros.LearnMissing = false
	plain := trainTyped(t, ds, "rgcn", zeros).Value("test_accuracy")
	want := trainTyped(t, ds, "rgcn", o)
	if got := want.Value("test_accuracy"); got < 0.8 || got < plain+0.2 {
		t.Errorf("the test accuracy is %v; with zeros it is %v", got, plain)
	}
	// 30 users and 5 brands, in 2 columns, as many as items have.
	if rows := tensorsOf(t, want.Weights())[learnedRows]; len(rows.Shape) != 2 || rows.Shape[0] != 35 || rows.Shape[1] != 2 {
		t.Errorf("the learned rows are %v", rows.Shape)
	}
	dir := filepath.Join(t.TempDir(), "shop")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{4, 2} {
		o.Workers, o.VirtualRanks, o.Threads = workers, 4/workers, 3
		run := trainTyped(t, load(t, dir), "rgcn", o)
		if !bytes.Equal(weights(t, run), weights(t, want)) || run.Value("test_accuracy") != want.Value("test_accuracy") {
			t.Errorf("%d workers have other weights, rows or metrics", workers)
		}
	}
	r, err := gnb.Infer(t.Context(), want, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true, Workers: 2})
	if err != nil || r.Value < 0.9 { // of all items
		t.Errorf("Infer has the accuracy %v, %v", r.Value, err)
	}
	_, had, err := gnb.OptionsOf(want)
	if err != nil || !had.LearnMissing || had.Embedding != 0 {
		t.Errorf("the run's options are %+v, %v", had, err)
	}
}

// On parts, with the whole graph in the directory and without, runs have the same bits for any number of workers, and learn
// what the undivided dataset shows. The features in one matrix cannot be told from zeros that are learned.
func TestLearnMissingOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := unknownUsers(t)
	o := learning
	var first []byte
	for _, c := range []struct {
		workers int
		bare    bool
	}{{1, false}, {2, false}, {2, true}} {
		parts := divideWell(t, ds, 4, divided.Options{NoTopology: c.bare})
		o.Workers, o.VirtualRanks = c.workers, 4/c.workers
		run := trainTyped(t, parts, "rgcn", o)
		if first == nil {
			first = weights(t, run)
		}
		if !bytes.Equal(weights(t, run), first) || run.Value("test_accuracy") < 0.8 {
			t.Errorf("%d workers (no topology: %v) have other weights or rows, or the accuracy %v", c.workers, c.bare, run.Value("test_accuracy"))
		}
		if rows := tensorsOf(t, run.Weights())[learnedRows]; len(rows.Shape) != 2 || rows.Shape[0] != 35 {
			t.Errorf("the learned rows are %v", rows.Shape)
		}
		if r, err := gnb.Infer(t.Context(), run, parts, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true, Workers: c.workers}); err != nil || r.Value < 0.9 {
			t.Errorf("Infer has the accuracy %v, %v", r.Value, err)
		}
	}
	one := ds.WithGraph(ds.Graph)
	one.NodeFeatures, one.Features = nil, &dataset.Matrix{Rows: ds.Nodes(), Cols: 1, F32: make([]float32, ds.Nodes())}
	if _, err := gnb.Train(t.Context(), divideWell(t, one, 2, divided.Options{}), gnb.RGCN, learning); err == nil || !strings.Contains(err.Error(), "cannot tell which types have zeros alone") {
		t.Errorf("parts of one matrix: %v", err)
	}
}

// Sampled evaluation, full-graph steps and words of sparse features read learned rows too; an interrupted run
// resumes to the bits of an undisturbed one on another number of workers.
func TestLearnMissingResumes(t *testing.T) {
	ds := unknownUsers(t)
	x := &dataset.Sparse{Rows: 600, Cols: 40, Indptr: make([]int64, 601)}
	for v := range 600 {
		x.Indices = append(x.Indices, int32(v%40))
		x.Indptr[v+1] = int64(v + 1)
	}
	ds.NodeFeatures[0] = dataset.NodeFeatures{Sparse: x}
	o := learning
	o.Epochs, o.Workers, o.VirtualRanks, o.CheckpointEvery, o.Eval = 4, 2, 2, 2, "sampled"
	want := trainTyped(t, ds, "rgcn", o)
	cut := o
	cut.RunDir, cut.Resume = filepath.Join(t.TempDir(), "run"), gnb.Never
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cut.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
			cancel()
		}
	}
	if _, err := gnb.Train(ctx, ds, gnb.RGCN, cut); !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	cut.Resume, cut.RunDir, cut.Events, cut.Workers, cut.VirtualRanks = cut.RunDir, "", nil, 4, 1
	if run := trainTyped(t, ds, "rgcn", cut); !bytes.Equal(weights(t, run), weights(t, want)) {
		t.Error("the resumed run has other weights or rows than the undisturbed one")
	}
}

func TestLearnMissingRefuses(t *testing.T) {
	full := unknownUsers(t)
	full.NodeFeatures[1], full.NodeFeatures[2] = dataset.NodeFeatures{Dense: &dataset.Matrix{Rows: 30, Cols: 1, F32: make([]float32, 30)}}, dataset.NodeFeatures{Dense: &dataset.Matrix{Rows: 5, Cols: 1, F32: make([]float32, 5)}}
	for _, m := range []*dataset.Matrix{full.NodeFeatures[1].Dense, full.NodeFeatures[2].Dense} {
		for i := range m.F32 {
			m.F32[i] = 1
		}
	}
	o := learning
	disk, both, gpu := o, o, o
	disk.Features, both.Embedding, gpu.Device = "disk", 8, "cuda"
	for _, c := range []struct {
		want string
		ds   *gnb.Dataset
		o    gnb.TrainOptions
	}{
		{"gnb: every type of nodes of shop has features", full, o},
		{"gnb: LearnMissing is for datasets with types of nodes, and planted has none", load(t, "planted?nodes=100&classes=3"), o},
		{"gnb: LearnMissing reads features from memory", unknownUsers(t), disk},
		{"gnb: Embedding learns a row for each node of every type", unknownUsers(t), both},
		{"gnb: learned embeddings train on CPUs only so far", unknownUsers(t), gpu},
	} {
		if _, err := gnb.Train(t.Context(), c.ds, gnb.RGCN, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
