package gnb_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

var broken = gnb.Program("test.broken", func(w *gnb.Worker, at int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	for epoch := range w.Epochs(30) {
		for b := range w.Batches("train", gnb.Loader{Batch: 64, MaxSteps: 1}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		if epoch == at {
			break
		}
	}
	w.Log(w.Evaluate(net, gnb.FullNeighbors, "val"))
	return nil
})

// An evaluation after a break out of the loop over epochs belongs to the last epoch, even if the
// run resumes there.
func TestEvaluationAfterABreak(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	dir := t.TempDir()
	for _, resume := range []string{gnb.Never, dir} {
		var epochs []int
		_, err := gnb.Launch(t.Context(), broken, 13, gnb.LaunchOptions{
			Data:            ds,
			Quiet:           true,
			RunDir:          dir,
			Resume:          resume,
			CheckpointEvery: 1,
			Events: func(e runs.Event) {
				if e.Kind == "metrics" || e.Kind == "log" {
					epochs = append(epochs, e.Epoch)
				}
			},
		})
		if err != nil || len(epochs) != 2 || epochs[0] != 13 || epochs[1] != 13 {
			t.Errorf("resume %q: reported at epochs %v, %v; want 13", resume, epochs, err)
		}
	}
}

// defaultsCases are programs that rely on defaults, with the expected error, "" for none.
var defaultsCases = map[string]struct {
	want string
	run  func(w *gnb.Worker, sizes gnb.ModelConfig)
}{
	"no fanouts to sample by": {`Evaluate got no fanouts to sample by, at defaults_test\.go:\d+; give Sampled one for each layer, or take FullNeighbors`, func(w *gnb.Worker, s gnb.ModelConfig) {
		w.Evaluate(gnb.SAGE.New(w, s), gnb.Sampled(nil, 0, 1), "val")
	}},
	"batches without fanouts": {`a batch of 0 and at most 3 batches.*give it Fanouts`, func(w *gnb.Worker, s gnb.ModelConfig) {
		w.Evaluate(gnb.SAGE.New(w, s), gnb.Evaluation{MaxBatches: 3}, "val")
	}},
	"networks of several depths": {`networks "sage" and "mlp" have 2 and 1 layers, so a Loader has no default; give it Fanouts`, func(w *gnb.Worker, s gnb.ModelConfig) {
		gnb.SAGE.New(w, s)
		s.Layers = 1
		gnb.MLP.New(w, s)
		for range w.Batches("train", gnb.Loader{}) {
		}
	}},
	"networks of several depths, with fanouts": {"", func(w *gnb.Worker, s gnb.ModelConfig) {
		deep := gnb.SAGE.New(w, s)
		s.Layers = 1
		gnb.MLP.New(w, s)
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{2, 2}}) {
			deep.Forward(b)
		}
	}},
	"networks of one depth": {"", func(w *gnb.Worker, s gnb.ModelConfig) {
		first := gnb.SAGE.New(w, s)
		gnb.MLP.New(w, s)
		for b := range w.Batches("train", gnb.Loader{MaxSteps: 1}) {
			first.Forward(b)
		}
	}},
	"the whole graph by networks of several depths": {"", func(w *gnb.Worker, s gnb.ModelConfig) {
		deep := gnb.SAGE.New(w, s)
		s.Layers = 1
		shallow := gnb.SAGE.New(w, s)
		full := w.FullGraph("train")
		for _, net := range []*gnb.Net[*nn.SAGE]{deep, shallow} {
			w.Step(full.Loss(net.Forward(full)), w.Adam(net, 0.01))
		}
	}},
	"a bound of the gradient that is not a number": {`Clip's bound is NaN, which is not a number; it is a number from 0 up, at defaults_test\.go:\d+`, func(w *gnb.Worker, s gnb.ModelConfig) {
		w.Adam(gnb.SAGE.New(w, s), 0.1).Clip(math.NaN())
	}},
	"a rate of 0": {"", func(w *gnb.Worker, s gnb.ModelConfig) {
		net := gnb.SAGE.New(w, s)
		before := bytes.Clone(floats(net.Params().Flat()))
		opts := []*gnb.Optimizer{w.Adam(net, 0), w.SGD(net, 0)}
		for b := range w.Batches("train", gnb.Loader{MaxSteps: 2}) {
			w.Step(b.Loss(net.Forward(b)), opts[b.Step])
		}
		if !bytes.Equal(before, floats(net.Params().Flat())) {
			w.Fail(os.ErrInvalid)
		}
	}},
	"a batch of a sampler of one's own": {"", func(w *gnb.Worker, s gnb.ModelConfig) {
		net := gnb.SAGE.New(w, s)
		opt := w.Adam(net, 0.01)
		own, err := sample.New(w.Dataset().Graph, sample.Config{Picker: sample.Fanouts{3, 3}, Transpose: true})
		if err != nil {
			w.Fail(err)
		}
		seeds, err := w.Dataset().Split("train")
		if err != nil {
			w.Fail(err)
		}
		for step := range 3 {
			b, err := own.Sample(0, step, sample.Seeds{IDs: seeds[:10]})
			if err != nil {
				w.Fail(err)
			}
			mine := &gnb.Batch{Batch: b}
			out := net.Forward(mine)
			if out.Rows() != 10 || len(mine.Labels) != 10 || mine.Labels[3] != w.Dataset().Labels[seeds[3]] {
				w.Fail(os.ErrInvalid)
			}
			w.Step(mine.Loss(out), opt)
		}
	}},
}

// numbersIn returns the bytes of a file's numbers, without the rest of the file.
func numbersIn(t *testing.T, path string) (b []byte) {
	t.Helper()
	ts, _, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ts {
		b = append(b, floats(x.F32)...)
	}
	return b
}

// floats returns the bytes of numbers, for comparison.
func floats(x []float32) []byte {
	var b []byte
	for _, v := range x {
		u := math.Float32bits(v)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return b
}

var defaults = gnb.Program("test.defaults", func(w *gnb.Worker, name string) error {
	ds := w.Dataset()
	defaultsCases[name].run(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: max(2, ds.Classes()), Layers: 2})
	return nil
})

// An option that a program leaves out has one meaning or is an error.
func TestWhatDefaultsMean(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	for name, c := range defaultsCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gnb.Launch(t.Context(), defaults, name, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir(), Threads: 1})
			if c.want != "" {
				readable(t, err, c.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

var unlabelled = gnb.Program("test.unlabelled", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: 2, Layers: 2})
	opt := w.Adam(net, 0.01)
	full := w.FullGraph("train")
	for range w.Epochs(2) { // a loss that uses no labels
		out := net.Forward(full)
		w.Step(&nn.Loss{Sum: out.Fwd().SumAll(out), Weight: 1}, opt)
	}
	w.Result("labels", float64(len(full.Labels)+len(full.Targets)))
	return nil
})

// FullGraph also accepts a graph without labels.
func TestFullGraphWithoutLabels(t *testing.T) {
	whole := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	ds := &gnb.Dataset{Graph: whole.Graph, Features: whole.Features, Splits: whole.Splits, Meta: whole.Meta}
	ds.Meta.NumClasses = 0
	run, err := gnb.Launch(t.Context(), unlabelled, 0, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
	if err != nil || run.Value("labels") != 0 || run.Result.Steps != 2 {
		t.Errorf("%v: %v", run, err)
	}
}

// A batch larger than the split is the split.
func TestLargeBatches(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	for _, workers := range []int{1, 2, 3} {
		for _, per := range []int{math.MaxInt32, 1 << 20} {
			run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
				ModelOptions:     gnb.ModelOptions{Hidden: 4, Dropout: 0.5},
				OptimizerOptions: gnb.OptimizerOptions{BatchPerWorker: per, Epochs: 2},
				LaunchOptions: gnb.LaunchOptions{
					Workers:      workers,
					VirtualRanks: 2,
					Quiet:        true,
					RunDir:       t.TempDir(),
					Threads:      1,
				},
			})
			if err != nil || run.Result.Steps != 2 {
				t.Errorf("%d workers, %d seeds per worker: %v, %v", workers, per, run, err)
			}
		}
	}
	_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{BatchPerWorker: math.MaxInt}, LaunchOptions: gnb.LaunchOptions{Workers: 2, Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	if err == nil || !strings.Contains(err.Error(), "BatchPerWorker is 9223372036854775807; it is 1 to 2147483647") {
		t.Error(err)
	}
	run, err := gnb.Launch(t.Context(), plain, plainArgs{gnb.Loader{BatchPerWorker: math.MaxInt}, 4, 0.01}, gnb.LaunchOptions{Data: ds, Workers: 2, VirtualRanks: 3, Quiet: true, RunDir: t.TempDir()})
	if err != nil || run.Result.Steps != 2 {
		t.Errorf("the largest batch of a Loader gave %v, %v", run, err)
	}
}
