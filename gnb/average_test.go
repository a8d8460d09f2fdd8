package gnb_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/testneed"
)

// averaging trains with an exponential average, which it also computes itself, and fails if what the run evaluates or saves
// has other weights.
var averaging = gnb.Program("test.averaging", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	sizes := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2}
	net, other := gnb.SAGE.New(w, sizes), gnb.SAGE.New(w, sizes)
	opt := w.Optimizer(net, optim.NewAveraged(optim.NewAdam(optim.AdamOptions{LR: 0.02}), optim.EMA(0.8)))
	var avg []float32
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3}, Batch: 100}) {
			w.Step(b.Loss(net.Forward(b)), opt)
			at := slices.Clone(net.Params().Flat())
			if avg == nil {
				avg = at
				continue
			}
			for i := range avg {
				avg[i] = 0.8*avg[i] + 0.2*at[i]
			}
		}
	}
	raw := slices.Clone(net.Params().Flat())
	got := w.Evaluate(net, gnb.FullNeighbors, "val").Of("val")
	w.SaveBest(net, got)
	if !slices.Equal(net.Params().Flat(), raw) {
		return errors.New("evaluation has changed the weights")
	}
	w.LoadBest(net) // what is saved is the average
	far := 0.
	for i, v := range net.Params().Flat() {
		far = max(far, math.Abs(float64(v-avg[i])))
	}
	if far > 1e-6 || slices.Equal(raw, net.Params().Flat()) {
		return fmt.Errorf("the saved weights are %v from the average", far)
	}
	// The network has the loaded weights now.
	copy(other.Params().Flat(), net.Params().Flat())
	if a, b := w.Evaluate(net, gnb.FullNeighbors, "val").Of("val"), w.Evaluate(other, gnb.FullNeighbors, "val").Of("val"); a != b || a != got {
		return fmt.Errorf("the average has the accuracy %v, its file %v, and its numbers %v", got, a, b)
	}
	return nil
})

// What a run with an average evaluates and saves is the average.
func TestAverageIsEvaluatedAndSaved(t *testing.T) {
	t.Parallel()
	_, err := gnb.Launch(t.Context(), averaging, 0, gnb.LaunchOptions{Data: load(t, scheduleSet), Workers: 2, Threads: 1, Quiet: true, RunDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
}

// Training with groups and an average has the same bits for each division of a step, and after an interruption.
func TestTrainAverageResumes(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Parallel()
	ds := load(t, scheduleSet)
	for _, avg := range []optim.Averaging{optim.EMA(0.9), optim.SWA(1)} {
		o := gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers:         2,
				Threads:         1,
				CheckpointEvery: 1,
				Quiet:           true,
				Seed:            4,
			},
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
			SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{3, 3}},
			OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 5, LR: 0.05, Average: avg, Groups: []optim.Group{{Match: "convs.0", LR: 0.01}, {Match: "*.bias", WeightDecay: optim.None}}, WeightDecay: 0.01},
		}
		whole := train(t, ds, o)
		one := o
		one.Workers, one.VirtualRanks = 1, 2
		sameRun(t, whole, train(t, ds, one))
		plain := o
		plain.Average = optim.Averaging{}
		if bytes.Equal(weights(t, train(t, ds, plain)), weights(t, whole)) {
			t.Errorf("%s: the run's weights are not the average", avg)
		}
		for _, stop := range []int64{2, 13} {
			sameRun(t, whole, resumedAt(t, ds, o, stop))
		}
		// The metrics of the best epoch are those of its saved weights.
		r, err := gnb.Infer(t.Context(), whole, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := accuracyOn(t, ds, r, "val"), whole.Value("val_accuracy"); got != want {
			t.Errorf("%s: the best weights have the accuracy %v, and the run says %v", avg, got, want)
		}
	}
	_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Groups: []optim.Group{{Match: "lin", LR: 1}}, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	readable(t, err, `group "lin" matches no parameter.*convs\.0\.lin_l\.weight`)
}

// Models whose output is made of all layers train to the same bits for each division of a step, and in cooperative batches to
// close weights; the exact evaluation is that of gnb.Infer.
func TestTrainJumpingKnowledge(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Parallel()
	ds := load(t, scheduleSet)
	for _, jk := range []string{"cat", "max", "lstm"} {
		o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 1, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5, Layers: 3, JK: jk, Norm: "layer"}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 4, LR: 0.02}}
		run := train(t, ds, o)
		o.Workers, o.VirtualRanks = 1, 2
		sameRun(t, run, train(t, ds, o))
		o.Workers, o.VirtualRanks, o.Cooperative = 2, 0, true
		together, err := train(t, ds, o).Losses()
		if err != nil {
			t.Fatal(err)
		}
		o.Workers, o.Cooperative = 1, false
		alone, err := train(t, ds, o).Losses()
		if err != nil || len(alone) != len(together) {
			t.Fatalf("%d losses and %d, %v", len(alone), len(together), err)
		}
		for i, x := range alone {
			if math.Abs(x-together[i]) > 1e-4 {
				t.Errorf("%s: step %d has the loss %v in a cooperative batch and %v in one", jk, i, together[i], x)
			}
		}
		r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := accuracyOn(t, ds, r, "val"), run.Value("val_accuracy"); got != want || !(got > 0.4) {
			t.Errorf("%s: the accuracy is %v by gnb.Infer, and the run says %v", jk, got, want)
		}
		if _, o, err := gnb.OptionsOf(run); err != nil || o.JK != jk {
			t.Errorf("OptionsOf has %q, %v", o.JK, err)
		}
	}
	_, err := gnb.Train(t.Context(), ds, gnb.GAT, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{JK: "mean", Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}})
	readable(t, err, `JK is "mean"`)
}

// accuracyOn returns the accuracy of logits on a split.
func accuracyOn(t *testing.T, ds *gnb.Dataset, r gnb.InferResult, split string) float64 {
	t.Helper()
	x, err := r.Logits()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := ds.Split(split)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for _, v := range ids {
		row := x.F32[int(v)*x.Cols : (int(v)+1)*x.Cols]
		if slices.Index(row, slices.Max(row)) == int(ds.Labels[v]) {
			right++
		}
	}
	return float64(right) / float64(len(ids))
}

// Losses of the test's own: the cross-entropy, and half of it for one class.
var (
	plainLoss  = gnb.DeclareLoss("test.plain", func(b *gnb.Batch, logits *nn.Tensor) *nn.Loss { return nn.CrossEntropy(logits, b.Labels) })
	unevenLoss = gnb.DeclareLoss("test.uneven", func(b *gnb.Batch, logits *nn.Tensor) *nn.Loss {
		return nn.CrossEntropyOptions{Weights: []float32{0.5, 1, 1}}.Loss(logits, b.Labels)
	})
)

// Train takes a declared loss; the cross-entropy as one has the weights of the default.
func TestTrainOwnLoss(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 1, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 2}}
	want := weights(t, train(t, ds, o))
	o.OwnLoss = plainLoss
	run := train(t, ds, o)
	if !bytes.Equal(weights(t, run), want) {
		t.Error("the cross-entropy as a loss of one's own trains other weights")
	}
	if _, had, err := gnb.OptionsOf(run); err != nil || had.OwnLoss != plainLoss {
		t.Errorf("OptionsOf has the loss %q, %v", had.OwnLoss, err)
	}
	o.OwnLoss = unevenLoss
	uneven := weights(t, train(t, ds, o))
	o.OwnLoss, o.ClassWeights = "", []float32{0.5, 1, 1}
	if bytes.Equal(uneven, want) || !bytes.Equal(uneven, weights(t, train(t, ds, o))) {
		t.Error("a declared loss with class weights does not train the weights of ClassWeights")
	}
	_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OwnLoss: "nope", LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	readable(t, err, `"nope"`)
}
