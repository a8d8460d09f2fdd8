package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// featureless loads a generated dataset and takes its features away.
func featureless(t testing.TB, spec string) *gnb.Dataset {
	t.Helper()
	ds := load(t, spec)
	ds.Features = nil
	return ds
}

// tensorsOf reads a file of weights.
func tensorsOf(t testing.TB, path string) map[string]safetensors.Tensor {
	t.Helper()
	ts, _, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]safetensors.Tensor{}
	for _, x := range ts {
		named[x.Name] = x
	}
	return named
}

const learnedRows = "node_embedding.weight"

var embedded = gnb.TrainOptions{
	ModelOptions:     gnb.ModelOptions{Embedding: 12, Dropout: 0.5, Hidden: 16},
	SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{4, 3}},
	OptimizerOptions: gnb.OptimizerOptions{Batch: 64, Epochs: 3, LR: 0.02, ClipNorm: 1, WeightDecay: 1e-3},
	LaunchOptions:    gnb.LaunchOptions{Seed: 5, Threads: 1},
}

// Runs with the same Workers × VirtualRanks have the same weights and learned rows to the bit, on any
// number of threads.
func TestEmbeddingBits(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := featureless(t, "planted?nodes=600&classes=3&seed=2")
	var first *runs.Run
	for _, c := range []struct{ workers, virtual, threads int }{{1, 4, 1}, {1, 4, 3}, {2, 2, 1}, {4, 1, 2}} {
		o := embedded
		o.Workers, o.VirtualRanks, o.Threads, o.RunDir = c.workers, c.virtual, c.threads, t.TempDir()
		run := train(t, ds, o)
		if first == nil {
			first = run
			continue
		}
		if !bytes.Equal(weights(t, first), weights(t, run)) {
			t.Errorf("%d workers of %d virtual ranks and %d threads have other weights than one worker", c.workers, c.virtual, c.threads)
		}
		if got, want := run.TestAccuracy(), first.TestAccuracy(); got != want {
			t.Errorf("%d workers have the test accuracy %v, one has %v", c.workers, got, want)
		}
	}
	rows := tensorsOf(t, first.Weights())[learnedRows]
	if !slices.Equal(rows.Shape, []int{ds.Nodes(), 12}) {
		t.Fatalf("the file of weights has learned rows of shape %v", rows.Shape)
	}
	// A row that no batch reads keeps its initial value; nearly all others move.
	start := nn.NewEmbedding(ds.Nodes(), 12)
	start.Init(5, 0, ds.Nodes())
	moved := 0
	for v := range ds.Nodes() {
		if !slices.Equal(rows.F32[12*v:12*v+12], start.W[12*v:12*v+12]) {
			moved++
		}
	}
	if moved < ds.Nodes()/2 {
		t.Errorf("training moved %d of %d rows", moved, ds.Nodes())
	}
}

// Train's rows are those of the same training written with package nn alone, on the whole graph.
func TestEmbeddingAgainstReference(t *testing.T) {
	ds := featureless(t, "karate")
	const cols, hidden, epochs, lr = 6, 8, 12, 0.03
	run := train(t, ds, gnb.TrainOptions{
		ModelOptions:      gnb.ModelOptions{Embedding: cols, Hidden: hidden},
		SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{-1, -1}},
		OptimizerOptions:  gnb.OptimizerOptions{Epochs: epochs, LR: lr},
		LaunchOptions:     gnb.LaunchOptions{Seed: 3, Threads: 1, RunDir: t.TempDir()},
		EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
	})
	n := ds.Nodes()
	m := nn.NewSAGEModel(nn.ModelConfig{In: cols, Hidden: hidden, Out: ds.Classes(), Layers: 2})
	params, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	params.Init(3)
	table := nn.NewEmbedding(n, cols)
	table.Init(3, 0, n)
	every := make([]int32, n)
	for v := range every {
		every[v] = int32(v)
	}
	labels := slices.Repeat([]int32{-1}, n)
	seeds, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range seeds {
		labels[v] = ds.Labels[v]
	}
	adam, sparse := optim.NewAdam(optim.AdamOptions{LR: lr}), optim.NewSparseAdam(optim.AdamOptions{LR: lr})
	f := nn.NewFwd(nn.Config{})
	for range epochs {
		f.Reset(nn.Config{Train: true})
		x := table.Leaf(f, every, &nn.Space{})
		loss := nn.CrossEntropy(nn.Forward(m, f, nn.FullGraph(ds.Graph, 2), x), labels)
		params.ZeroGrad()
		loss.Backward()
		scale := 1 / float32(loss.Weight)
		adam.Step(params.Flat(), params.Grad(), scale)
		sparse.Step(table.W, cols, every, x.Grad(), scale)
	}
	got := tensorsOf(t, run.Weights())
	for name, want := range map[string][]float32{learnedRows: table.W, "convs.0.lin_l.weight": params.Get("convs.0.lin_l.weight").W} {
		for i, v := range got[name].F32 {
			// Sums over other orders of the same edges differ by some 1e-7; Adam's steps of 0.03 enlarge
			// that where a gradient is near 0.
			if d := math.Abs(float64(v - want[i])); !(d < 2e-4) {
				t.Fatalf("%s: element %d is %v, the reference has %v", name, i, v, want[i])
			}
		}
	}
}

// A dataset without features is learned by its edges alone: better than from random features that stay
// as they are.
func TestEmbeddingLearns(t *testing.T) {
	testneed.NotShort(t, "it trains twice")
	ds := featureless(t, "planted?nodes=400&classes=4&degree=12&homophily=0.8&seed=3")
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{8, 8}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 64, Epochs: 25, LR: 0.02}, LaunchOptions: gnb.LaunchOptions{Seed: 1, Threads: 1, Workers: 2, RunDir: t.TempDir()}}
	o.Embedding = 16
	learned := train(t, ds, o)
	random := load(t, "planted?nodes=400&classes=4&degree=12&homophily=0.8&seed=3")
	table := nn.NewEmbedding(ds.Nodes(), 16)
	table.Init(1, 0, ds.Nodes())
	random.Features.F32, random.Features.Rows, random.Features.Cols = table.W, ds.Nodes(), 16
	o.Embedding, o.RunDir = 0, t.TempDir()
	fixed := train(t, random, o)
	t.Logf("test accuracy %.3f with learned rows and %.3f with the same rows fixed", learned.TestAccuracy(), fixed.TestAccuracy())
	if got, base := learned.TestAccuracy(), fixed.TestAccuracy(); !(got > base+0.1) || !(got > 0.6) {
		t.Errorf("test accuracy %.3f with learned rows and %.3f with the same rows fixed", got, base)
	}
}

// Layer-wise evaluation, sampled evaluation with all neighbours, and Infer on any number of workers agree
// on the learned rows of the best epoch.
func TestEmbeddingEvaluation(t *testing.T) {
	testneed.NotShort(t, "it trains twice")
	ds := featureless(t, "planted?nodes=300&classes=3&seed=4")
	o := embedded
	o.Workers, o.RunDir, o.Fanouts = 2, t.TempDir(), []int{-1, -1}
	run := train(t, ds, o)
	o.RunDir, o.Eval = t.TempDir(), "sampled"
	if sampled := train(t, ds, o); sampled.TestAccuracy() != run.TestAccuracy() {
		t.Errorf("sampled evaluation with all neighbours gives %v, layer-wise evaluation %v", sampled.TestAccuracy(), run.TestAccuracy())
	}
	test, err := ds.Split("test")
	if err != nil {
		t.Fatal(err)
	}
	var first []float32
	for _, workers := range []int{1, 3} {
		r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Workers: workers, Threads: 1, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		logits, err := r.Logits()
		if err != nil {
			t.Fatal(err)
		}
		correct := 0
		for _, v := range test {
			if nn.Argmax(logits.F32[int(v)*logits.Cols:int(v+1)*logits.Cols]) == int(ds.Labels[v]) {
				correct++
			}
		}
		if got := float64(correct) / float64(len(test)); got != run.TestAccuracy() {
			t.Errorf("Infer on %d workers gives the test accuracy %v, the run had %v", workers, got, run.TestAccuracy())
		}
		if first == nil {
			first = logits.F32
		} else if !slices.Equal(first, logits.F32) {
			t.Errorf("Infer on %d workers gives other logits than on one", workers)
		}
	}
	other := featureless(t, "planted?nodes=301&classes=3&seed=4")
	_, err = gnb.Infer(t.Context(), run, other, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
	readable(t, err, `learned embeddings of shape \[300 12\], and here they are \[301 12\]`)
}

// An interrupted run, and one whose last checkpoint is lost as after a crash, resume to the bits of an
// undisturbed run, also on another number of workers with the same number of virtual ranks in all.
func TestEmbeddingResume(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := featureless(t, "planted?nodes=600&classes=3&seed=2")
	o := embedded
	o.Epochs, o.Workers, o.VirtualRanks, o.CheckpointEvery, o.Quiet = 5, 2, 2, 2, true
	whole := o
	whole.RunDir = t.TempDir()
	want := train(t, ds, whole)
	for _, c := range []struct {
		name             string
		lose             bool
		workers, virtual int
	}{{"same workers", false, 2, 2}, {"lost checkpoint, four workers", true, 4, 1}, {"one worker", true, 1, 4}} {
		cut := o
		cut.RunDir, cut.Resume = filepath.Join(t.TempDir(), "run"), gnb.Never
		ctx, cancel := context.WithCancel(t.Context())
		cut.Events = func(e runs.Event) {
			if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
				cancel()
			}
		}
		_, err := gnb.Train(ctx, ds, gnb.SAGE, cut)
		cancel()
		if !errors.Is(err, gnb.ErrInterrupted) {
			t.Fatalf("%s: the run was not interrupted: %v", c.name, err)
		}
		if c.lose {
			path, _, _, err := checkpoint.Latest(filepath.Join(cut.RunDir, "checkpoints"))
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cut.Resume, cut.RunDir, cut.Events, cut.Workers, cut.VirtualRanks = cut.RunDir, "", nil, c.workers, c.virtual
		run, err := gnb.Train(t.Context(), ds, gnb.SAGE, cut)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !bytes.Equal(weights(t, run), weights(t, want)) {
			t.Errorf("%s: the resumed run has other weights than the undisturbed one", c.name)
		}
	}
}

// killedOnce trains learned rows; if kill is set, one rank ends itself by SIGKILL in the middle, once.
var killedOnce = gnb.Program("test.embedding.killed", func(w *gnb.Worker, kill bool) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: 9, Embedding: true, Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.3})
	opt := w.Adam(net, 0.02)
	for range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 64}) {
			w.Step(b.Loss(net.Forward(b)), opt)
			if !kill || w.Rank() != 1 || b.Epoch != 1 || b.Step != 2 {
				continue
			}
			if f, err := os.OpenFile(filepath.Join(w.RunDir(), "killed"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				_ = f.Close()
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}
	return nil
})

// A run one of whose workers is killed restarts from its last checkpoint, with the bits of a run without
// a failure.
func TestEmbeddingAfterKill(t *testing.T) {
	testneed.Raced(t, "it waits for a restart")
	ds := featureless(t, "planted?nodes=600&classes=3&seed=2")
	var want []byte
	for _, kill := range []bool{false, true} {
		run, err := gnb.Launch(t.Context(), killedOnce, kill, gnb.LaunchOptions{
			Data:            ds,
			Workers:         2,
			Threads:         1,
			Seed:            8,
			CheckpointEvery: 2,
			Restarts:        1,
			Quiet:           true,
			Resume:          gnb.Never,
			RunDir:          filepath.Join(t.TempDir(), "run"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if !kill {
			want = weights(t, run)
			continue
		}
		if run.Result.Restarts != 1 {
			t.Errorf("the run was restarted %d times, want once", run.Result.Restarts)
		}
		if !bytes.Equal(weights(t, run), want) {
			t.Error("the restarted run has other weights than one without a failure")
		}
	}
}

// fullAndBest trains learned rows by steps on the whole graph, keeps the best, moves on, and goes back.
var fullAndBest = gnb.Program("test.embedding.full", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: 7, Embedding: true, Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.05)
	full := w.FullGraph("train")
	step := func() { w.Step(nn.CrossEntropy(net.Forward(full), full.Labels), opt) }
	for range w.Epochs(6) {
		step()
	}
	before := w.Evaluate(net, gnb.Evaluation{Loss: true}, "test").Splits[0].Loss
	w.SaveBest(net, 1)
	for range 5 {
		step()
	}
	after := w.Evaluate(net, gnb.Evaluation{Loss: true}, "test").Splits[0].Loss
	w.LoadBest(net)
	back := w.Evaluate(net, gnb.Evaluation{Loss: true}, "test").Splits[0].Loss
	w.Result("before", before)
	w.Result("after", after)
	w.Result("back", back)
	return nil
})

// A program of one's own has learned rows by ModelConfig.Embedding: on the whole graph with the same bits
// on any number of workers, and LoadBest brings back rows as well as weights.
func TestEmbeddingInProgram(t *testing.T) {
	testneed.Raced(t, "it trains three times")
	ds := featureless(t, "karate")
	var first []byte
	for _, workers := range []int{1, 2, 3} {
		run, err := gnb.Launch(t.Context(), fullAndBest, 0, gnb.LaunchOptions{Data: ds, Workers: workers, Threads: 1, Seed: 2, Quiet: true, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if b, a, back := run.Value("before"), run.Value("after"), run.Value("back"); b == a || b != back {
			t.Errorf("%d workers: the loss was %v, then %v, and after LoadBest %v; want the first again", workers, b, a, back)
		}
		if first == nil {
			first = weights(t, run)
		} else if !bytes.Equal(first, weights(t, run)) {
			t.Errorf("%d workers have other weights than one", workers)
		}
	}
}

// Workers that make batches together learn the rows that one worker learns, up to rounding: their owners
// add up the gradients of all workers that read a row.
func TestEmbeddingCooperative(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := featureless(t, "planted?nodes=900&degree=9&classes=4&seed=3")
	for _, c := range []struct {
		m       gnb.AnyModel
		degrees bool
	}{{gnb.SAGE, false}, {gnb.GCN, true}, {gnb.GAT, false}} {
		o := gnb.TrainOptions{
			ModelOptions:      gnb.ModelOptions{Embedding: 10, Dropout: 0.5, Hidden: 16, InputDropout: 0.1, BatchDegrees: c.degrees},
			LaunchOptions:     gnb.LaunchOptions{Threads: 1, Seed: 11, CheckpointEvery: -1},
			OptimizerOptions:  gnb.OptimizerOptions{Batch: 97, Epochs: 2, LR: 1e-3},
			SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{4, 3}, Digest: true},
			EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
			Cooperative:       true,
		}
		one := trainModel(t, ds, c.m, o)
		want, err := one.Losses()
		if err != nil {
			t.Fatal(err)
		}
		o.Workers = 3
		run := trainModel(t, ds, c.m, o)
		if !bytes.Equal(weights(t, run), weights(t, trainModel(t, ds, c.m, o))) {
			t.Errorf("%s: a repeated run has other bits", c.m.Name())
		}
		if a, b := run.Result.Text["digest"], one.Result.Text["digest"]; a != b || a == "" {
			t.Errorf("%s: three workers sampled %q, one %q", c.m.Name(), a, b)
		}
		got, err := run.Losses()
		if err != nil || len(got) != len(want) || len(got) < 4 {
			t.Fatalf("%s: %d losses, want %d, %v", c.m.Name(), len(got), len(want), err)
		}
		for i := range want {
			// Rows whose gradient is near 0 step by up to the learning rate in either direction.
			if d := math.Abs(got[i]-want[i]) / want[i]; !(d <= 1e-4) {
				t.Errorf("%s: the loss of step %d is %v, with one worker %v", c.m.Name(), i, got[i], want[i])
			}
		}
	}
}

// Embeddings replace features: a run of Train reads no row of features, wherever they are, and has the bits
// of a run on a dataset without features.
func TestEmbeddingReadsNoFeatures(t *testing.T) {
	testneed.NotShort(t, "it trains three times")
	with := stored(t, load(t, "planted?nodes=900&features=20&classes=3&seed=6"), dataset.WriteOptions{})
	without := featureless(t, "planted?nodes=900&features=20&classes=3&seed=6")
	o := embedded
	o.Workers, o.Epochs = 2, 2
	want := trainAndInfer(t, without, "gcn", o)
	for _, place := range []string{"memory", "disk"} {
		o.Features = place
		got := trainAndInfer(t, with, "gcn", o)
		if !bytes.Equal(got.weights, want.weights) || !bytes.Equal(got.logits, want.logits) {
			t.Errorf("with features in %s the run has other weights or outputs than one without features", place)
		}
		if rows := got.run.Result.Rows; rows != nil && (rows.Disk > 0 || rows.Cached > 0 || rows.Bytes > 0) {
			t.Errorf("with features in %s the run read rows of features: %+v", place, rows)
		}
	}
}

// A plan counts table and state once a machine, and the copies of a run with a directory.
func TestEmbeddingPlan(t *testing.T) {
	testneed.NotShort(t, "it may measure the machine")
	ds := featureless(t, "planted?nodes=5000&classes=3")
	p, err := gnb.Plan(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Embedding: 40, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 2, Device: "cpu", Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, i := range p.Memory.Shared {
		got[i.Name] = i.Bytes
	}
	// 12 bytes of table and state for each node and column and 4 for a node in an owner's list; 16 for copies.
	if want := int64(5000 * (12*40 + 4)); got["learned embeddings with their optimiser state"] != want {
		t.Errorf("the plan's shared memory is %v; want %d for learned embeddings", p.Memory.Shared, want)
	}
	if least := int64(5000 * 16 * 40); got["copies for checkpoints and best weights"] < least {
		t.Errorf("the plan's shared memory is %v; want %d or more for copies", p.Memory.Shared, least)
	}
}

func TestEmbeddingRefuses(t *testing.T) {
	ds, whole := featureless(t, "planted?nodes=20000&classes=3"), load(t, "karate")
	for _, c := range []struct {
		name string
		ds   *gnb.Dataset
		set  func(*gnb.TrainOptions)
		want string
	}{
		{"no features", ds, func(*gnb.TrainOptions) {}, `has no node features.*--embedding 64`},
		{"negative", ds, func(o *gnb.TrainOptions) { o.Embedding = -1 }, `Embedding is -1`},
		{"wide", ds, func(o *gnb.TrainOptions) { o.Embedding = 1<<18 + 1 }, `Embedding is 262145`},
		{"memory", ds, func(o *gnb.TrainOptions) { o.Embedding = 1 << 18; o.Hidden = 1; o.Batch = 1 }, `takes? about|would take`},
		{"GPU", whole, func(o *gnb.TrainOptions) { o.Embedding = 4; o.Device = "cuda" }, `--device cpu`},
	} {
		o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never, RunDir: filepath.Join(t.TempDir(), "run")}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
		c.set(&o)
		run, err := gnb.Train(t.Context(), c.ds, gnb.SAGE, o)
		if err == nil {
			t.Errorf("%s: there was no error, %v", c.name, run)
			continue
		}
		readable(t, err, c.want)
	}
}
