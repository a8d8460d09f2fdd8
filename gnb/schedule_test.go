package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/testneed"
)

const scheduleSet = "planted?nodes=600&features=8&classes=3&seed=2"

// Each step of a run has the learning rate of its schedule, whose times are epochs, on any number of workers.
func TestTrainSchedules(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	const epochs = 6
	for _, s := range []optim.Schedule{optim.StepDecay(2, 0.5), optim.Cosine(1e-4).After(1.5), optim.OneCycle()} {
		run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: epochs, LR: 0.02, Schedule: s}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}})
		steps, err := run.Steps()
		if err != nil || len(steps) == 0 || len(steps)%epochs != 0 {
			t.Fatalf("%s: %d steps, %v", s, len(steps), err)
		}
		in, seen := s.Steps(float64(len(steps)/epochs)), map[float64]bool{}
		for i, step := range steps {
			if want := in.Rate(0.02, int64(i), int64(len(steps))); math.Abs(step.LR-want) > 1e-12 {
				t.Errorf("%s: step %d has the rate %v, want %v", s, i, step.LR, want)
			}
			seen[step.LR] = true
		}
		if len(seen) < 3 {
			t.Errorf("%s: the run has %d different rates", s, len(seen))
		}
		_, o, err := gnb.OptionsOf(run)
		if err != nil || o.Schedule != s {
			t.Errorf("OptionsOf has the schedule %+v, %v; want %+v", o.Schedule, err, s)
		}
	}
}

// A plateau lowers the rate when the validation value stops rising.
func TestTrainPlateau(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	s := optim.Plateau(0, 0.7, 1e-3)
	for _, by := range []string{"metric", "loss"} {
		run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200, Epochs: 24, LR: 0.05, Schedule: s}, BestBy: by})
		steps, err := run.Steps()
		if err != nil {
			t.Fatal(err)
		}
		var w optim.Watch
		at := 0
		err = run.Events(func(e runs.Event) {
			if e.Kind != runs.KindEpoch {
				return
			}
			for ; at < len(steps) && steps[at].Epoch == e.Epoch; at++ {
				if want := w.Rate(s, 0.05); steps[at].LR != want {
					t.Errorf("by %s: step %d of epoch %d has the rate %v, want %v", by, steps[at].Step, e.Epoch, steps[at].LR, want)
				}
			}
			for _, v := range e.Values {
				switch {
				case by == "loss" && v.Name == "val_loss":
					w.Observe(s, -v.Value)
				case by == "metric" && v.Name == "val_accuracy":
					w.Observe(s, v.Value)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if w.Cuts < 2 || at != len(steps) {
			t.Errorf("by %s: the rate fell %d times in %d of %d steps; the test needs more", by, w.Cuts, at, len(steps))
		}
	}
}

// A run that is interrupted resumes with the same rates and weights, to the bit; W × V = 4 has the same weights with
// 1, 2 and 4 workers.
func TestTrainScheduleResumes(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Parallel()
	ds := load(t, scheduleSet)
	for _, s := range []optim.Schedule{optim.Plateau(0, 0.5, 0), optim.Cosine(0).After(2)} {
		o := gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers:         2,
				VirtualRanks:    2,
				Threads:         1,
				CheckpointEvery: 1,
				Quiet:           true,
				Seed:            4,
			},
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
			SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{3, 3}},
			OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 8, LR: 0.05, Schedule: s, Optimizer: "adamw", WeightDecay: 0.01},
			ClassWeights:     []float32{1, 2, 0.5},
			LabelSmoothing:   0.1,
		}
		whole := train(t, ds, o)
		for _, c := range [][2]int{{1, 4}, {4, 1}} {
			o := o
			o.Workers, o.VirtualRanks = c[0], c[1]
			if !bytes.Equal(weights(t, train(t, ds, o)), weights(t, whole)) {
				t.Errorf("%s: %d workers × %d virtual ranks have other weights", s, c[0], c[1])
			}
		}
		for _, stop := range []int64{7, 22} {
			sameRun(t, whole, resumedAt(t, ds, o, stop))
		}
	}
}

// resumedAt trains until the first checkpoint of a step from stop on, is interrupted, and resumes to the end.
func resumedAt(t *testing.T, ds *gnb.Dataset, o gnb.TrainOptions, stop int64) *runs.Run {
	t.Helper()
	o.RunDir = filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindCheckpoint && e.Total >= stop {
			cancel()
		}
	}
	if _, err := gnb.Train(ctx, ds, gnb.SAGE, o); !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("not interrupted at step %d: %v", stop, err)
	}
	o.Resume, o.Events = o.RunDir, nil
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Class weights make a run prefer the class of the larger weight.
func TestTrainClassWeights(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 3}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	counts := map[int]int{}
	for class := range 3 {
		o.ClassWeights = []float32{1e-3, 1e-3, 1e-3}
		o.ClassWeights[class] = 1
		run := train(t, ds, o)
		r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		logits, err := r.Logits()
		if err != nil {
			t.Fatal(err)
		}
		for v := range ds.Nodes() {
			if nn.Argmax(logits.F32[v*logits.Cols:(v+1)*logits.Cols]) == class {
				counts[class]++
			}
		}
	}
	for class := range 3 {
		if counts[class] < ds.Nodes()*9/10 {
			t.Errorf("with all the weight on class %d, %d of %d nodes are predicted to be of it", class, counts[class], ds.Nodes())
		}
	}
	w, err := gnb.BalancedWeights(ds)
	if err != nil || len(w) != 3 {
		t.Fatalf("balanced weights are %v, %v", w, err)
	}
	ids, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]float64, 3)
	for _, v := range ids {
		sums[ds.Labels[v]] += float64(w[ds.Labels[v]])
	}
	for _, s := range sums {
		if math.Abs(s-float64(len(ids))/3) > 1e-3 {
			t.Errorf("balanced weights give the classes %v of %d rows", sums, len(ids))
		}
	}
}

// An option without meaning is an error before work starts, and one sentence.
func TestTrainScheduleMisuse(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	several := *ds
	several.Labels, several.MultiLabels = nil, &dataset.Multi{Rows: ds.Nodes(), Cols: 3, Data: make([]int8, 3*ds.Nodes())}
	several.Meta.Metric, several.Meta.MultiLabel, several.Meta.NumClasses = dataset.MetricMicroF1, true, 3
	many := &several
	for name, c := range map[string]struct {
		ds *gnb.Dataset
		o  gnb.TrainOptions
	}{
		"nope":                {ds, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Optimizer: "nope"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"Eval is none":        {ds, gnb.TrainOptions{EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, OptimizerOptions: gnb.OptimizerOptions{Schedule: optim.Plateau(1, 0.5, 0)}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"longer":              {ds, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Schedule: optim.Cosine(0).After(4)}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"Min":                 {ds, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: 0.01, Schedule: optim.Cosine(0.1)}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"linear":              {ds, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Schedule: optim.Schedule{Kind: "linear"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"2 class weights":     {ds, gnb.TrainOptions{ClassWeights: []float32{1, 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"class 1 is -1":       {ds, gnb.TrainOptions{ClassWeights: []float32{1, -1, 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"several labels":      {many, gnb.TrainOptions{LabelSmoothing: 0.1, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		"LabelSmoothing is 1": {ds, gnb.TrainOptions{LabelSmoothing: 1, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
	} {
		c.o.Quiet, c.o.RunDir = true, filepath.Join(t.TempDir(), "run")
		_, err := gnb.Train(t.Context(), c.ds, gnb.SAGE, c.o)
		if err == nil || !strings.Contains(fmt.Sprint(err), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gnb.BalancedWeights(many); err == nil {
		t.Error("balanced weights of several labels a node")
	}
}
