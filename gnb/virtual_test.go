package gnb_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// mixed trains two networks in one loop over batches, which it may leave early, and on the whole
// graph.
var mixed = gnb.Program("test.mixed", func(w *gnb.Worker, early bool) error {
	ds := w.Dataset()
	sizes := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.4}
	one, two := gnb.SAGE.New(w, sizes), gnb.SAGE.New(w, sizes)
	optOne, optTwo := w.Adam(one, 0.01), w.Adam(two, 0.01)
	full := w.FullGraph("train")
	for range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, BatchPerWorker: 12}) {
			w.Step(nn.CrossEntropy(one.Forward(b), b.Labels), optOne)
			w.Step(nn.CrossEntropy(two.Forward(b), b.Labels), optTwo)
			if b.Step >= 3 && (b.EndsStep || early) {
				break
			}
		}
		// There are two steps on the whole graph, each with its own dropout mask.
		w.Step(nn.CrossEntropy(one.Forward(full), full.Labels), optOne)
		w.Step(nn.CrossEntropy(one.Forward(full), full.Labels), optOne)
	}
	return nil
})

// The same number of virtual ranks gives the same bits, including programs with several networks,
// loops that end early, and full-graph steps.
func TestVirtualRanksInAnyProgram(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	var want []byte
	for _, workers := range []int{1, 2, 4} {
		run, err := gnb.Launch(t.Context(), mixed, false, gnb.LaunchOptions{
			Data:         ds,
			Workers:      workers,
			VirtualRanks: 4 / workers,
			Threads:      1,
			Seed:         5,
			Quiet:        true,
			RunDir:       t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps, err := run.Steps(); err != nil || len(steps) != 3*(4*2+2) {
			t.Errorf("%d workers: %d steps, %v; want %d", workers, len(steps), err, 3*(4*2+2))
		}
		got := weights(t, run)
		if want == nil {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Errorf("%d workers have other weights than 1", workers)
		}
	}
	_, err := gnb.Launch(t.Context(), mixed, true, gnb.LaunchOptions{
		Data:         ds,
		VirtualRanks: 4,
		Threads:      1,
		Seed:         5,
		Quiet:        true,
		RunDir:       t.TempDir(),
	})
	readable(t, err, `Step was called for 1 of the 4 batches of a step.*leave a loop only where Batch\.EndsStep is true`)
}

// whole trains on the whole graph: each epoch has one step and one evaluation.
var whole = gnb.Program("test.whole", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, 0.02)
	full := w.FullGraph("train")
	for range w.Epochs(30) {
		w.Step(nn.CrossEntropy(net.Forward(full), full.Labels), opt)
	}
	w.Evaluate(net, gnb.FullNeighbors, "test")
	return nil
})

// Full-graph training has the same bits on any number of workers, and a step's
// loss is the mean over the split.
func TestFullGraphOnAnyWorld(t *testing.T) {
	testneed.NotShort(t, "it trains four times")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	var first *runs.Run
	for _, c := range []struct{ workers, virtual int }{{1, 1}, {2, 1}, {3, 1}, {1, 3}} {
		run, err := gnb.Launch(t.Context(), whole, 0, gnb.LaunchOptions{
			Data:         ds,
			Workers:      c.workers,
			VirtualRanks: c.virtual,
			Threads:      1,
			Seed:         5,
			Quiet:        true,
			RunDir:       t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = run
			if losses, err := run.Losses(); err != nil || len(losses) != 30 || math.Abs(losses[0]-math.Log(3)) > 0.5 {
				t.Errorf("the losses are %v, %v; want 30 losses, the first near ln 3 = %.3f", losses, err, math.Log(3))
			}
			if a := run.TestAccuracy(); !(a > 0.5) {
				t.Errorf("the test accuracy is %v, want more than guessing", a)
			}
		} else if !bytes.Equal(weights(t, first), weights(t, run)) {
			t.Errorf("%d workers × %d virtual ranks have other weights than one", c.workers, c.virtual)
		}
	}
}

// A step that adds up the gradients of some small batches is that of one batch as large as all of them, to the bit, with the
// memory for the small one.
func TestAccumulate(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Parallel()
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, VirtualRanks: 4, Threads: 1, Seed: 4, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200, Epochs: 3}}
	whole := train(t, ds, o)
	steps, err := whole.Steps()
	if err != nil || len(steps) < 6 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, c := range []gnb.TrainOptions{
		{LaunchOptions: gnb.LaunchOptions{Workers: 1}, OptimizerOptions: gnb.OptimizerOptions{Batch: 50, Accumulate: 4}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		{LaunchOptions: gnb.LaunchOptions{Workers: 2}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Accumulate: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		{LaunchOptions: gnb.LaunchOptions{Workers: 1, VirtualRanks: 2}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Accumulate: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		{LaunchOptions: gnb.LaunchOptions{Workers: 1}, OptimizerOptions: gnb.OptimizerOptions{BatchPerWorker: 50, Accumulate: 4}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
	} {
		o := o
		o.Workers, o.VirtualRanks, o.Batch, o.BatchPerWorker, o.Accumulate = c.Workers, c.VirtualRanks, c.Batch, c.BatchPerWorker, c.Accumulate
		run := train(t, ds, o)
		if again, err := run.Steps(); err != nil || len(again) != len(steps) || !bytes.Equal(weights(t, run), weights(t, whole)) {
			t.Errorf("%d workers that add up %d batches of %d or %d: %d steps and not %d, or other weights", c.Workers, c.Accumulate, c.Batch, c.BatchPerWorker, len(again), len(steps))
		}
		_, had, err := gnb.OptionsOf(run)
		if err != nil || had.Accumulate != c.Accumulate || had.Batch != c.Batch || had.BatchPerWorker != c.BatchPerWorker || had.VirtualRanks != max(1, c.VirtualRanks) {
			t.Errorf("OptionsOf has %d batches of %d or %d, %d virtual ranks, %v", had.Accumulate, had.Batch, had.BatchPerWorker, had.VirtualRanks, err)
		}
	}
	// The default batch is multiplied too; the split has fewer nodes.
	if again, err := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1}, OptimizerOptions: gnb.OptimizerOptions{Accumulate: 2, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}).Steps(); err != nil || len(again) != 1 {
		t.Errorf("%d steps, %v", len(again), err)
	}
	_, err = gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Accumulate: 4096}, LaunchOptions: gnb.LaunchOptions{VirtualRanks: 2, Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	readable(t, err, `VirtualRanks is 8192; it is 1 to 4096`)
	large := load(t, "planted?nodes=20000&features=64&classes=3&seed=2")
	memory := func(batch, accumulate int) int64 {
		p, err := gnb.Plan(t.Context(), large, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Batch: batch, Accumulate: accumulate}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{10, 10}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Memory.PerWorker()
	}
	small, added, all := memory(128, 0), memory(128, 8), memory(1024, 0)
	t.Logf("a worker takes %d bytes for a batch of 128, %d with 8 of them in a step, %d for one of 1024", small, added, all)
	if added-small > (all-small)/2 {
		t.Errorf("a worker takes %d bytes for a batch of 128, %d with 8 of them in a step, and %d for one of 1024", small, added, all)
	}
}
