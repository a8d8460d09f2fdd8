package links_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/walk"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// embedded reads the file of a run's embeddings.
func embedded(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run.Dir, "embeddings.npy"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// probe returns the test accuracy of a logistic regression on embeddings.
func probe(t *testing.T, ds *gnb.Dataset, run *runs.Run) float64 {
	t.Helper()
	x, err := links.Embeddings(run)
	if err != nil {
		t.Fatal(err)
	}
	on := *ds
	on.Features, on.SparseFeatures, on.Meta.FeatureDim = x, nil, x.Cols
	got, err := gnb.Train(t.Context(), &on, gnb.MLP, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Layers: 1}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 200, LR: 0.01, WeightDecay: 0.03}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 10}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	return got.TestAccuracy()
}

// embedding is a way to learn embeddings by walks.
type embedding struct {
	name, sampler string
	o             links.EmbedOptions
}

// embeddings returns ways to learn embeddings by walks: rows of a table, and networks with two samplers.
func embeddings() []embedding {
	return []embedding{
		{"deepwalk", "none: learned rows", links.EmbedOptions{Dim: 16}},
		{"node2vec", "none: learned rows", links.EmbedOptions{Dim: 16, P: 4, Q: 0.5, Negatives: 2, NegativesFrom: "degree75"}},
		{"sage", "fanouts", links.EmbedOptions{Dim: 16, Model: gnb.SAGE, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}}, ModelOptions: gnb.ModelOptions{Hidden: 16}}},
		{"labor", "`gnb.Labor`", links.EmbedOptions{Dim: 16, Model: gnb.GCN, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}, Sampler: "labor"}, ModelOptions: gnb.ModelOptions{Hidden: 16}}},
	}
}

// has returns the word for a promise in bench/notes/links.md.
func (e embedding) has(p linkstest.Promise) string {
	switch {
	case p == linkstest.Clean: // nothing is held out
		return "–"
	case p == linkstest.GPU && e.o.Model == nil:
		return "CPU"
	case p == linkstest.GPU:
		return "not tested"
	case p == linkstest.Divided:
		return "refused"
	}
	return "yes"
}

// small returns options of a short run of this kind.
func (e embedding) small(t *testing.T, workers int) links.EmbedOptions {
	o := e.o
	o.Dim, o.Length, o.PerNode, o.Window = 8, 6, 2, 2
	o.Workers, o.Threads, o.Seed, o.Epochs, o.Batch, o.Quiet, o.Device, o.RunDir = workers, 1, 3, 1, 200, true, "cpu", t.TempDir()
	return o
}

// Embeddings by walks have the same bits on one, two and four workers, and a linear model separates the
// classes by them. Without GNB_SOAK, a way to learn them is tried with one or two of these numbers.
func TestEmbed(t *testing.T) {
	testneed.NotShort(t, "it trains many times")
	ds := load(t, planted)
	for i, e := range embeddings() {
		name := e.name
		var first []byte
		var digest string
		counts := [][]int{{1, 2, 4}, {1, 2}, {1, 4}, {1, 2}}[i]
		if envknob.Soak.On() {
			counts = []int{1, 2, 4}
		}
		for _, workers := range counts {
			o := e.o
			o.Workers, o.VirtualRanks, o.Threads, o.Quiet, o.Digest = workers, 8/workers, 1, true, true
			o.Length, o.PerNode, o.Batch, o.RunDir, o.Seed, o.Epochs = 10, 2, 100, t.TempDir(), 3, 3
			run, err := links.Embed(t.Context(), ds, o)
			if err != nil {
				t.Fatal(err)
			}
			got := embedded(t, run)
			if first == nil {
				first, digest = got, run.Result.Text["digest"]
				if accuracy := probe(t, ds, run); accuracy < 0.4 {
					t.Errorf("%s: a linear model has a test accuracy of %v, and 0.25 is chance", name, accuracy)
				}
			} else if !bytes.Equal(got, first) || run.Result.Text["digest"] != digest || digest == "" {
				t.Errorf("%s: %d workers have other embeddings or another digest than one", name, workers)
			}
		}
	}
}

// walkSetting is the argument of walkProgram.
type walkSetting struct {
	Options  links.WalkOptions
	Split    bool   // walks on the message graph of a split
	FailOnce string // a file that exists after the run has failed once
	Sizes    gnb.ModelConfig
}

// walkProgram trains a table of rows on walks, and checks each batch.
var walkProgram = gnb.Program("test.walks", func(w *gnb.Worker, s walkSetting) error {
	g := w.Dataset().Graph
	s.Options.Loader.Fanouts = []int{0}
	var loader *links.Loader
	if s.Split {
		split, err := links.RandomSplit(w.Dataset(), links.SplitOptions{Seed: 4})
		if err != nil {
			return err
		}
		loader = links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{0}}})
		g = split.Message
	}
	walks := links.NewWalks(w, s.Options)
	net := links.New(w, links.Table, "dot", s.Sizes)
	opt := w.Adam(net, 0.01)
	counts := make([]float64, 2)
	w.Keep("counts", &counts)
	for epoch := range w.Epochs(3) {
		for b := range walks.Batches() {
			if _, err := os.Stat(s.FailOnce); s.FailOnce != "" && epoch == 1 && b.Step == 2 && w.Rank() == 0 && err != nil {
				if err := os.WriteFile(s.FailOnce, nil, 0o600); err != nil {
					return err
				}
				w.Fail(errors.New("failed once"))
			}
			counts[0] += float64(b.Edges.Len())
			for i, r := range b.Src {
				u, v := b.Pairs.Src[i], b.Pairs.Dst[i]
				if b.Seeds[r] != u || b.Seeds[b.Dst[i]] != v {
					return fmt.Errorf("rows %d and %d are of other nodes than pair %d → %d", r, b.Dst[i], u, v)
				}
				_, edge := slices.BinarySearch(g.InNeighbors(u), v)
				if positive := i%(1+b.PerEdge) == 0; positive && s.Options.Window == 1 && !edge {
					return fmt.Errorf("%d → %d is no step of a walk", u, v)
				} else if !positive && s.Options.Negatives.Strict && edge {
					return fmt.Errorf("the negative %d → %d is an edge", u, v)
				}
			}
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
		}
	}
	w.AllReduce(counts)
	w.Result("pairs", counts[0]/3)
	links.WriteEmbeddings(w, net, filepath.Join(w.RunDir(), "embeddings.npy"))
	if loader != nil {
		w.Result("test_auc", loader.Evaluate(net, "test").AUC)
	}
	return nil
})

// resumesWalks trains a table of rows on walks of the given kind, fails once within an epoch, and compares the
// resumed run with one that did not fail.
func resumesWalks(t *testing.T, e links.EmbedOptions, train func(walkSetting, gnb.LaunchOptions) (*runs.Run, error)) {
	t.Helper()
	s := walkSetting{Sizes: gnb.ModelConfig{In: 8, Out: 8, Layers: 1, Embedding: true}}
	s.Options = links.WalkOptions{Loader: gnb.Loader{Batch: 150}, Length: 4, Window: 2, PerNode: 2, P: e.P, Q: e.Q, Negatives: links.NegativeOptions{PerEdge: 2}}
	if e.NegativesFrom == "degree75" {
		s.Options.Negatives.From = links.ByDegree75
	}
	whole, err := train(s, gnb.LaunchOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s.FailOnce = filepath.Join(t.TempDir(), "failed")
	if _, err := train(s, gnb.LaunchOptions{Workers: 2, RunDir: dir, CheckpointEvery: 1}); err == nil || !strings.Contains(err.Error(), "failed once") {
		t.Fatalf("the first run ended with %v", err)
	}
	again, err := train(s, gnb.LaunchOptions{Workers: 2, Resume: dir, CheckpointEvery: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(embedded(t, again), embedded(t, whole)) {
		t.Error("the resumed run has other embeddings than one that did not fail")
	}
}

// Pairs are those of the walks, and a run that fails within an epoch resumes to the same bits.
func TestWalks(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	s := walkSetting{Sizes: gnb.ModelConfig{In: 8, Out: 8, Layers: 1, Embedding: true}}
	s.Options = links.WalkOptions{Loader: gnb.Loader{Batch: 150}, Length: 4, Window: 1, PerNode: 2, Negatives: links.NegativeOptions{Strict: true, PerEdge: 2}}
	train := func(s walkSetting, o gnb.LaunchOptions) (*runs.Run, error) {
		o.Data, o.Quiet, o.Seed = ds, true, 3
		if o.RunDir == "" && o.Resume == "" {
			o.RunDir = t.TempDir()
		}
		return gnb.Launch(t.Context(), walkProgram, s, o)
	}
	whole, err := train(s, gnb.LaunchOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	alone := 0
	for v := range int32(ds.Nodes()) {
		if ds.Graph.InDegree(v) == 0 {
			alone++
		}
	}
	if got, want := whole.Value("pairs"), float64(2*4*(ds.Nodes()-alone)); got != want {
		t.Errorf("an epoch has %v pairs, want a step of each of the walks: %v", got, want)
	}
	for _, e := range embeddings() {
		if e.o.Model == nil { // rows of a table are no model that can kill its process: they are those above
			resumesWalks(t, e.o, train)
			continue
		}
		o := e.small(t, 2)
		o.Model, o.VirtualRanks, o.CheckpointEvery = mortalModel, 2, 1
		whole, err := links.Embed(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		o.RunDir = t.TempDir()
		t.Setenv(killEnv, "1 5 0")
		if _, err := links.Embed(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%s: the first run ended with %v", e.name, err)
		}
		t.Setenv(killEnv, "")
		o.RunDir, o.Resume = "", o.RunDir
		again, err := links.Embed(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(embedded(t, again), embedded(t, whole)) {
			t.Errorf("%s: the resumed run has other embeddings than one that was not killed", e.name)
		}
	}
	s = walkSetting{Options: links.WalkOptions{Loader: gnb.Loader{Batch: 150}, Window: 1, Length: 8}, Split: true, Sizes: s.Sizes}
	run, err := train(s, gnb.LaunchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if auc := run.Value("test_auc"); !(auc > 0.55) {
		t.Errorf("walks on the message graph predict test edges with an AUC of %v, and 0.5 is chance", auc)
	}
}

func TestEmbedErrors(t *testing.T) {
	ds := load(t, planted)
	for want, o := range map[string]links.EmbedOptions{
		"links: Dim and Negatives cannot":      {Dim: -1},
		"links: model table has no layers":     {Dim: 16, ModelOptions: gnb.ModelOptions{Embedding: 8}},
		`pairs: there are no negatives "hard"`: {NegativesFrom: "hard"},
	} {
		o.Quiet, o.RunDir = true, t.TempDir()
		if _, err := links.Embed(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := links.Embed(t.Context(), nil, links.EmbedOptions{}); err == nil {
		t.Error("embeddings of no dataset are no error")
	}
	if _, err := links.Embeddings(nil); err == nil {
		t.Error("embeddings of no run are no error")
	}
	testneed.NotShort(t, "it starts many workers")
	table := gnb.ModelConfig{In: 8, Out: 8, Layers: 1, Embedding: true}
	for want, s := range map[string]walkSetting{
		"walk: P is -1":                                 {Options: links.WalkOptions{P: -1}, Sizes: table},
		"links: PerNode is 65537":                       {Options: links.WalkOptions{PerNode: 65537}, Sizes: table},
		"links: Window is -1":                           {Options: links.WalkOptions{Window: -1}, Sizes: table},
		"links: walks take no negatives from the batch": {Options: links.WalkOptions{Negatives: links.NegativeOptions{From: links.InBatch}}, Sizes: table},
		"its rows have 8 columns and its embeddings 4":  {Sizes: gnb.ModelConfig{In: 8, Out: 4, Layers: 1, Embedding: true}},
	} {
		_, err := gnb.Launch(t.Context(), walkProgram, s, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// nearProgram trains on the graph of a dataset by importance.
var nearProgram = gnb.Program("test.near", func(w *gnb.Worker, _ string) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 16, Out: w.Dataset().Classes(), Layers: 1})
	opt := w.Adam(net, 0.01)
	w.Digest()
	for range w.Epochs(10) {
		for b := range w.Batches("train", gnb.Loader{Sampler: sample.Weighted{Fanouts: []int{4}}, Batch: 100}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
	}
	w.Result("test_accuracy", w.Evaluate(net, gnb.FullNeighbors, "test").Of("test"))
	return nil
})

// Graphs of neighbourhoods by walks train as every other graph: one digest, and the same bits.
func TestTrainOnNeighbourhoods(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	visited, err := walk.Visited(ds.Graph, walk.VisitedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ranked, err := walk.PageRank(ds.Graph, walk.PageRankOptions{K: 10})
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*gnb.Graph{"visited": visited, "PageRank": ranked} {
		var bits []byte
		digest := ""
		for _, workers := range []int{1, 2} {
			run, err := gnb.Launch(t.Context(), nearProgram, "", gnb.LaunchOptions{Data: ds.WithGraph(g), Workers: workers, VirtualRanks: 2 / workers, Threads: 1, Quiet: true, RunDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if bits == nil {
				bits, digest = weights(t, run), run.Result.Text["digest"]
			} else if !bytes.Equal(bits, weights(t, run)) || digest == "" || digest != run.Result.Text["digest"] {
				t.Errorf("%s: two workers have other weights or another digest than one", name)
			}
			if a := run.Value("test_accuracy"); a < 0.5 {
				t.Errorf("%s: the test accuracy is %v, and 0.25 is chance", name, a)
			}
		}
	}
}

// DeepWalk and node2vec on Cora: a logistic regression on 20 labels of each class has the accuracy that
// is published, 70 to 75 %. Without GNB_SOAK they train for one short epoch, and 14 % is chance.
func TestEmbedCora(t *testing.T) {
	testneed.NotShort(t, "it trains twice")
	file := testneed.RealData(t, "planetoid/ind.cora.graph")
	dir := t.TempDir()
	if _, err := convert.Convert(t.Context(), filepath.Dir(file), dir+"/cora", convert.Options{Name: "cora"}); err != nil {
		t.Fatal(err)
	}
	ds := load(t, dir+"/cora")
	o, low := links.EmbedOptions{PerNode: 4, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1, LR: 0.01}}, 0.5
	if envknob.Soak.On() {
		o, low = links.EmbedOptions{Window: 10, Negatives: 5, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, LR: 0.005}}, 0.70
	}
	for name, q := range map[string]float64{"DeepWalk": 1, "node2vec": 0.5} {
		o.Q, o.Quiet, o.RunDir = q, true, t.TempDir()
		run, err := links.Embed(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		accuracy := probe(t, ds, run)
		t.Logf("%s: test accuracy %.4f, %.0f s", name, accuracy, run.Result.Seconds)
		if accuracy < low {
			t.Errorf("%s: a logistic regression has a test accuracy of %.4f, below %v", name, accuracy, low)
		}
	}
}
