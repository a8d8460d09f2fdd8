package gnb_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
)

// finiteFiles fails the test if a run's weights or checkpoints contain a number that is not finite.
// It returns the number of files that it read.
func finiteFiles(t *testing.T, dir string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".safetensors" {
			return err
		}
		files++
		ts, _, err := safetensors.ReadFile(path)
		if err != nil {
			return err
		}
		for _, x := range ts {
			for _, v := range x.F32 {
				if v-v != 0 {
					return fmt.Errorf("%s: %s holds %v", path, x.Name, v)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// diverged checks that a run ended with the error for numbers that are not finite, and that the
// error matches want.
func diverged(t *testing.T, run *runs.Run, err error, want string) {
	t.Helper()
	readable(t, err, want)
	if !errors.Is(err, gnb.ErrNotFinite) {
		t.Errorf("%v is not ErrNotFinite", err)
	}
	if run == nil {
		t.Fatal("no run")
	}
	if run.Result.State != runs.StateFailed || !strings.Contains(run.Result.Error, "finite") {
		t.Errorf("the run is %s: %s", run.Result.State, run.Result.Error)
	}
	finiteFiles(t, run.Dir)
}

const waysOut = `the usual ways out are a lower learning rate.*ClipNorm.*gnb data check`

// A learning rate that is far too high ends the run with an error that names the layer that
// overflowed. The error is the same for any number of workers and virtual ranks, and the best
// weights are kept.
func TestDivergenceEndsTheRun(t *testing.T) {
	testneed.NotShort(t, "it trains five times")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	texts := map[string]bool{}
	for _, c := range []struct{ workers, virtual int }{{1, 1}, {2, 1}, {4, 1}, {1, 4}, {2, 2}} {
		run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers:         c.workers,
				VirtualRanks:    c.virtual,
				Threads:         1,
				CheckpointEvery: 1,
				Quiet:           true,
				RunDir:          t.TempDir(),
				Seed:            4,
			},
			OptimizerOptions:  gnb.OptimizerOptions{LR: 1e30, Epochs: 3, Batch: 64},
			EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
			ModelOptions:      gnb.ModelOptions{Dropout: 0.5},
		})
		diverged(t, run, err, `rank 0.*failed at epoch 0, step \d+.*stopped being finite at epoch 0, step \d+, on rank 0: layer \d \(\*nn\.SAGEConv\) of model "sage" gives .*Inf for node \d+ in column \d+, of finite input; `+waysOut)
		if n := finiteFiles(t, run.Dir); n == 0 {
			t.Error("no checkpoint was kept")
		}
		texts[regexp.MustCompile(`.*(stopped being.*layer \d).*`).ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", " "), "$1")] = true
	}
	if len(texts) != 1 {
		t.Errorf("the errors differ: %v", texts)
	}
}

// spoilt is a model whose layers' outputs a test changes.
type spoilt struct {
	nn.SAGE
	after func(f *nn.Fwd, layer int, h *nn.Tensor) *nn.Tensor
}

func (m *spoilt) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = m.SAGE.Layer(f, i, b, h)
	if m.after != nil {
		h = m.after(f, i, h)
	}
	return h
}

var spoiltModel = gnb.Model("test.spoilt", func(s gnb.ModelConfig) *spoilt { return &spoilt{SAGE: *nn.NewSAGEModel(s)} })

// blown returns h with every element replaced by an infinity or NaN, through operations that have
// gradients.
func blown(f *nn.Fwd, h *nn.Tensor) *nn.Tensor {
	return f.Scale(f.Scale(h, math.MaxFloat32), math.MaxFloat32)
}

// finiteCases are causes of numbers that are not finite in epoch 1, step 2 of the program below
// (only on rank 1 if there are several), each with the expected error. Earlier batches are finite.
var finiteCases = map[string]string{
	"layer":     `layer 1 \(\*nn\.SAGEConv\) of model "test\.spoilt" gives .*Inf for node \d+ in column \d, of finite input`,
	"first":     `layer 0 \(\*nn\.SAGEConv\) of model "test\.spoilt" gives .*Inf for node \d+ in column \d, of finite input`,
	"loss":      `the loss is \+?-?Inf, though every layer of model "test\.spoilt" has finite output: check how it is computed, and its targets`,
	"gradient":  `the gradient of parameter convs\.\d\..* of model "test\.spoilt" has .*(Inf|NaN), though the loss is finite`,
	"weights":   `parameter convs\.0\..* of model "test\.spoilt" NaN`,
	"optimiser": `the step of optimiser test makes parameter convs\.0\..* NaN`,
}

// nanStep is an optimiser that makes a weight NaN at its third step in epoch 1.
type nanStep struct {
	optim.Optimizer
	now *bool
}

func (o nanStep) Name() string { return "test" }

func (o nanStep) Step(w, g []float32, scale float32) {
	o.Optimizer.Step(w, g, scale)
	if *o.now {
		w[3] = float32(math.NaN())
	}
}

var finiteProgram = gnb.Program("test.finite", func(w *gnb.Worker, kind string) error {
	ds := w.Dataset()
	net := spoiltModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	now := false
	opt := w.Optimizer(net, nanStep{optim.NewAdam(optim.AdamOptions{LR: 0.01}), new(bool)})
	if kind == "optimiser" {
		opt = w.Optimizer(net, nanStep{optim.NewAdam(optim.AdamOptions{LR: 0.01}), &now})
	}
	here := func() bool { return now && (w.World() == 1 || w.Rank() == 1) }
	net.Model.after = func(f *nn.Fwd, i int, h *nn.Tensor) *nn.Tensor {
		if here() && (kind == "layer" && i == 1 || kind == "first" && i == 0) {
			return blown(f, h)
		}
		return h
	}
	for epoch := range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 4}, Batch: 64}) {
			now = epoch == 1 && b.Step == 2
			if here() && kind == "weights" {
				net.Params().Flat()[2] = float32(math.NaN())
			}
			l := nn.CrossEntropy(net.Forward(b), b.Labels)
			f := l.Sum.Fwd()
			switch {
			case here() && kind == "loss":
				l.Sum = blown(f, l.Sum)
			case here() && kind == "gradient": // blown of 0 is 0, but its gradient is infinite
				z := f.Scale(l.Sum, 0)
				l.Sum = blown(f, z)
			}
			w.Step(l, opt)
		}
		w.SaveBest(net, float64(epoch))
	}
	return nil
})

// A step whose numbers are not finite ends the run at once. The error names where they first
// occurred: the rank and the layer, the loss, the gradient or the weights. The run keeps and
// reports the best epoch before that step, and its checkpoints stay valid.
func TestNotFiniteNamesItsPlace(t *testing.T) {
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	for kind, want := range finiteCases {
		for _, c := range []struct{ workers, virtual int }{{1, 1}, {2, 1}, {4, 1}, {1, 2}} {
			if kind == "weights" && c.workers > 1 || testing.Short() && c.workers == 4 {
				continue // weights that differ between ranks are another failure
			}
			t.Run(fmt.Sprintf("%s-%d-%d", kind, c.workers, c.virtual), func(t *testing.T) {
				t.Parallel()
				run, err := gnb.Launch(t.Context(), finiteProgram, kind, gnb.LaunchOptions{
					Data:            ds,
					Workers:         c.workers,
					VirtualRanks:    c.virtual,
					Threads:         1,
					Quiet:           true,
					RunDir:          t.TempDir(),
					CheckpointEvery: 1,
				})
				rank := 0
				if c.workers > 1 && kind != "optimiser" {
					rank = 1
				}
				diverged(t, run, err, fmt.Sprintf(`rank %d.* failed at epoch 1, step 2.*at epoch 1, step 2, on rank %d: %s; %s.*the best epoch before that, 0, is kept in best\.safetensors`, rank, rank, want, waysOut))
				if n := finiteFiles(t, run.Dir); n < 4 {
					t.Errorf("there are %d files of weights; want three checkpoints and the best epoch", n)
				}
			})
		}
	}
}

type overwriteArgs struct {
	File  string // the file of features or weights; "" for none before epoch 1
	Eval  string
	Model string
}

// overwrite trains, while one file of its dataset is overwritten at the beginning of epoch 1.
var overwrite = gnb.Program("test.overwrite", func(w *gnb.Worker, a overwriteArgs) error {
	ds := w.Dataset()
	net := w.Network(a.Model, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	for epoch := range w.Epochs(3) {
		if epoch == 1 {
			w.Barrier()
			if w.Rank() == 0 {
				if err := overwriteFile(a.File); err != nil {
					return err
				}
			}
			w.Barrier()
		}
		if a.Eval == "" || epoch == 0 {
			for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 4}, Batch: 64}) {
				w.Step(b.Loss(net.Forward(b)), opt)
			}
		}
		switch {
		case a.Eval == "full", a.Eval == "late" && epoch > 0: // with "late", no evaluation has kept parts of the graph in memory before the overwrite

			w.SaveBest(net, w.Evaluate(net, gnb.FullNeighbors, "val").Of("val"))
		case a.Eval == "sampled":
			w.SaveBest(net, w.Evaluate(net, gnb.Sampled([]int{4, 4}, 32, 0), "val").Of("val"))
		default:
			w.SaveBest(net, float64(epoch))
		}
	}
	return nil
})

// overwriteFile fills a NumPy file of float32 with NaN.
func overwriteFile(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for at := 10 + int(binary.LittleEndian.Uint16(b[8:])); at < len(b); at += 4 {
		binary.LittleEndian.PutUint32(b[at:], math.Float32bits(float32(math.NaN())))
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

// If features or edge weights become NaN while a run reads them, the run ends with an error that
// names the node, in training and in evaluation.
func TestOverwrittenDataEndsTheRun(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	weighted := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	edges := make([]float32, weighted.Edges())
	for i := range edges {
		edges[i] = 1
	}
	g := weighted.Graph.WithEdgeWeights(edges)
	ds := &gnb.Dataset{Graph: g, Features: weighted.Features, Labels: weighted.Labels, Splits: weighted.Splits, Meta: weighted.Meta}
	for _, c := range []struct{ file, eval, want string }{
		{"features.npy", "", `at epoch 1, step 0, on rank 0: the input features of node \d+ have NaN in column 0`},
		{"features.npy", "full", `at epoch 1, on rank 0: the input features of node 0 have NaN in column 0`},
		{"features.npy", "sampled", `at epoch 1, on rank 0: the input features of node \d+ have NaN in column 0`},
		{"weights.npy", "", `at epoch 1, step 0, on rank 0: the weight of an edge into node \d+ is NaN`},
		{"weights.npy", "late", `at epoch 1, on rank 0: the weight of an edge into node \d+ is NaN`},
	} {
		for _, workers := range []int{1, 2, 4} {
			if testing.Short() && workers > 1 && c.file != "weights.npy" {
				continue
			}
			t.Run(fmt.Sprintf("%s-%s-%d", c.file, c.eval, workers), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "set")
				if err := dataset.Write(dir, ds); err != nil {
					t.Fatal(err)
				}
				mapped, err := dataset.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer mapped.Close()
				run, err := gnb.Launch(t.Context(), overwrite, overwriteArgs{filepath.Join(dir, c.file), c.eval, map[bool]string{true: "sage", false: "gcn"}[c.file == "features.npy"]}, gnb.LaunchOptions{
					Data:            mapped,
					Workers:         workers,
					Threads:         1,
					Quiet:           true,
					RunDir:          t.TempDir(),
					CheckpointEvery: 1,
				})
				diverged(t, run, err, c.want+`; `+waysOut+`.*the best epoch before that, 0, is kept in best\.safetensors`)
			})
		}
	}
}

// huge saves finite weights as the best whose output is not finite.
var huge = gnb.Program("test.huge", func(w *gnb.Worker, size float32) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	flat := net.Params().Flat()
	for i := range flat {
		flat[i] = size
	}
	for epoch := range w.Epochs(1) {
		w.SaveBest(net, float64(epoch))
	}
	return nil
})

// Infer writes nothing if the output of the weights is not finite, and its error says so.
func TestInferRefusesWhatIsNotFinite(t *testing.T) {
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	run, err := gnb.Launch(t.Context(), huge, 1e30, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		out := filepath.Join(t.TempDir(), "out.npy")
		r, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Workers: workers, Quiet: true})
		readable(t, err, `stopped being finite.*: layer 1 \(\*nn\.SAGEConv\) of model "sage" gives .*(Inf|NaN) for node \d+ in column 0, of finite input`)
		if !errors.Is(err, gnb.ErrNotFinite) || r != (gnb.InferResult{}) {
			t.Errorf("%d workers: %+v, %v", workers, r, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%d workers: Infer wrote %s", workers, out)
		}
	}
}

// A trial that diverges counts as failed, with the reason, and the sweep continues.
func TestSweepGoesOnAfterADivergence(t *testing.T) {
	testneed.NotShort(t, "it runs sweeps")
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	study, err := sweep.Run(t.Context(), ds, gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
		return gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: sweep.Choice(t, "lr", 0.01, 1e30, 0.02), Epochs: 2, Batch: 64}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Threads: 1}}
	}, sweep.Options{Method: "grid", Dir: t.TempDir(), Quiet: true})
	if err != nil || len(study.Trials) != 3 {
		t.Fatalf("%d trials, %v", len(study.Trials), err)
	}
	for _, trial := range study.Trials {
		want := runs.StateDone
		if trial.Options.LR == 1e30 {
			want = runs.StateFailed
		}
		if trial.State != want || (want == runs.StateFailed) != strings.Contains(trial.Error, "stopped being finite") {
			t.Errorf("learning rate %v: %s, %q", trial.Options.LR, trial.State, trial.Error)
		}
	}
	if best := study.Best(); best == nil || best.Options.LR > 1 {
		t.Errorf("the best trial is %+v", best)
	}
	finiteFiles(t, study.Dir)
}

// A split without any label is an error before the run starts; in a program's own loop it is an
// error after the first epoch.
func TestNoLabels(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	whole := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	ds := &gnb.Dataset{Graph: whole.Graph, Features: whole.Features, Labels: bytesOf(300, -1), Splits: whole.Splits, Meta: whole.Meta}
	dir := filepath.Join(t.TempDir(), "run")
	_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: dir}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	readable(t, err, `none of the 150 nodes of planted's split "train" has a label: there is nothing to train on; give labels`)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the run's directory was created")
	}
	ds.Labels = bytesOf(300, -1)
	ds.Labels[ds.Splits["train"][149]] = 1
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: 4, Dropout: 0.5}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}); err != nil {
		t.Errorf("one label: %v", err)
	}
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: 4, Dropout: 0.5}}); !errors.Is(err, gnb.ErrUndefined) {
		t.Errorf("one label and an unlabelled validation split: %v", err)
	}
	ds.Labels = bytesOf(300, -1)
	for _, workers := range []int{1, 2} {
		_, err = gnb.Launch(t.Context(), plain, plainArgs{gnb.Loader{Batch: 64, MaxSteps: 1}, 4, 0.01}, gnb.LaunchOptions{Data: ds, Workers: workers, Quiet: true, RunDir: t.TempDir()})
		readable(t, err, `no node in the 1 step of epoch 0 had a label, so nothing was trained`)
	}
}

// steep trains with a loss so large that its gradient is finite but the gradient's square is not.
var steep = gnb.Program("test.steep", func(w *gnb.Worker, factor float64) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 1e-3)
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 4}, Batch: 64}) {
			l := b.Loss(net.Forward(b))
			l.Sum = l.Sum.Fwd().Scale(l.Sum, factor)
			w.Step(l, opt)
		}
	}
	return nil
})

// If the optimiser's state is infinite, its weights can never change again, so the run ends at the
// end of the loop, whether it writes checkpoints or not.
func TestInfiniteOptimizerEndsTheRun(t *testing.T) {
	testneed.NotShort(t, "it trains a run for each optimiser and number of workers")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	for _, every := range []int{0, -1} {
		for _, workers := range []int{1, 2} {
			o := gnb.LaunchOptions{Data: ds, Workers: workers, Threads: 1, Quiet: true, RunDir: t.TempDir(), CheckpointEvery: every}
			run, err := gnb.Launch(t.Context(), steep, 1e24, o)
			diverged(t, run, err, `stopped being finite at epoch 0, on rank 0: .*exp_avg_sq.*has \+Inf.*; `+waysOut)
		}
	}
	run, err := gnb.Launch(t.Context(), steep, 1e10, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
	if err != nil || run.Result.State != runs.StateDone {
		t.Errorf("a large but finite state gave %v", err)
	}
}
