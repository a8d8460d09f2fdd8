package gnb_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
)

func load(t testing.TB, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// train trains without output in a directory of the test.
func train(t testing.TB, ds *gnb.Dataset, o gnb.TrainOptions) *runs.Run {
	t.Helper()
	o.Quiet, o.Resume = true, gnb.Never
	if o.RunDir == "" {
		o.RunDir = t.TempDir()
	}
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func weights(t testing.TB, r *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(r.Weights())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// With the same global batches, 1, 2, 3 and 4 workers have one digest, and the losses of their
// first ten steps agree within 1e-5.
func TestWorldSizeShowsNeitherInSamplesNorInLosses(t *testing.T) {
	ds := load(t, smallSet)
	var digest string
	var losses []float64
	for workers := 1; workers <= 4; workers++ {
		run := train(t, ds, gnb.TrainOptions{
			LaunchOptions:     gnb.LaunchOptions{Workers: workers, Threads: 1 + workers%2, Seed: 11},
			OptimizerOptions:  gnb.OptimizerOptions{Batch: 150, Epochs: 1, LR: 1e-3},
			SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{7, 4}, Digest: true},
			EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
			ModelOptions:      gnb.ModelOptions{Dropout: 0.5},
		})
		got, err := run.Losses()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < 10 {
			t.Fatalf("%d workers: %d steps, want at least 10", workers, len(got))
		}
		if workers == 1 {
			digest, losses = run.Result.Text["digest"], got
			if digest == "" {
				t.Fatal("the run has no digest")
			}
			continue
		}
		if d := run.Result.Text["digest"]; d != digest {
			t.Errorf("%d workers: digest %s, want %s as with one", workers, d, digest)
		}
		if u, s := run.Value("unique_edges"), run.Result.SampledEdges; u > float64(s) || u <= 0 {
			t.Errorf("%d workers: %v unique of %d sampled edges", workers, u, s)
		}
		for i := range 10 {
			if d := math.Abs(got[i]-losses[i]) / losses[i]; d > 1e-5 {
				t.Errorf("%d workers: the loss of step %d is %v, with one worker %v: they differ by %.2g", workers, i, got[i], losses[i], d)
			}
		}
	}
}

// Every division of 8 into workers × virtual ranks gives the same bits after 200 steps.
func TestVirtualRanksGiveEqualBits(t *testing.T) {
	ds := load(t, smallSet)
	steps := 200
	if testing.Short() {
		steps = 24
	}
	var want []byte
	for _, w := range []int{1, 2, 4, 8} {
		run := train(t, ds, gnb.TrainOptions{
			LaunchOptions:     gnb.LaunchOptions{Workers: w, VirtualRanks: 8 / w, Threads: 1, Seed: 3},
			OptimizerOptions:  gnb.OptimizerOptions{Batch: 125, Epochs: (steps + 11) / 12},
			SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{5, 5}},
			ModelOptions:      gnb.ModelOptions{Hidden: 16, Dropout: 0.5},
			EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
		})
		if got := run.Result.Steps; got < int64(steps) {
			t.Fatalf("%d workers made %d steps, want at least %d", w, got, steps)
		}
		if w == 1 {
			want = weights(t, run)
		} else if !bytes.Equal(weights(t, run), want) {
			t.Errorf("%d workers × %d virtual ranks: other bits than 1 × 8 after %d steps", w, 8/w, run.Result.Steps)
		}
	}
}

// The number of threads changes no bit.
func TestThreadsGiveEqualBits(t *testing.T) {
	ds := load(t, smallSet)
	var want []byte
	for threads := 1; threads <= 3; threads++ {
		run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: threads, Seed: 4}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200, Epochs: 3}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}}, ModelOptions: gnb.ModelOptions{Hidden: 32, Dropout: 0.5}})
		if threads == 1 {
			want = weights(t, run)
		} else if !bytes.Equal(weights(t, run), want) {
			t.Errorf("%d threads: other bits than one", threads)
		}
	}
}

// With uneven shares, where the last batch has fewer seeds than there are workers, every node of a
// split is evaluated exactly once.
func TestUnevenSharesAreExact(t *testing.T) {
	ds := load(t, "karate")
	val, err := ds.Split("val")
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for workers := 1; workers <= 4; workers++ {
		run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: workers, Threads: 1, Seed: 1}, OptimizerOptions: gnb.OptimizerOptions{Batch: 3, Epochs: 3}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}})
		got := fmt.Sprintf("%.6f %.6f", run.ValAccuracy(), run.TestAccuracy())
		if n := run.ValAccuracy() * float64(len(val)); math.Abs(n-math.Round(n)) > 1e-9 {
			t.Errorf("%d workers: validation accuracy %v is not a multiple of 1/%d", workers, run.ValAccuracy(), len(val))
		}
		if workers == 1 {
			want = got
		} else if got != want {
			t.Errorf("%d workers: accuracies %s, want %s as with one", workers, got, want)
		}
	}
}

// The times of an epoch's stages add up to its wall time.
func TestStagesAddUp(t *testing.T) {
	var epochs int
	_, err := gnb.Train(context.Background(), load(t, smallSet), gnb.SAGE, gnb.TrainOptions{
		LaunchOptions: gnb.LaunchOptions{
			Workers: 2,
			Quiet:   true,
			Resume:  gnb.Never,
			RunDir:  t.TempDir(),
			Events: func(e runs.Event) {
				if e.Kind != "epoch" {
					return
				}
				epochs++
				sum := 0.0
				for _, s := range e.Stages {
					sum += s
				}
				if math.Abs(sum-e.Seconds) > 0.05*e.Seconds {
					t.Errorf("epoch %d: the stages add up to %.4f s of %.4f s: %v", e.Epoch, sum, e.Seconds, e.Stages)
				}
				for _, s := range []string{"sample", "forward", "backward", "all-reduce", "optimizer", "evaluate"} {
					if e.Stages[s] <= 0 {
						t.Errorf("epoch %d: no time in stage %s: %v", e.Epoch, s, e.Stages)
					}
				}
			},
		},
		OptimizerOptions: gnb.OptimizerOptions{Epochs: 4, Batch: 200},
		ModelOptions:     gnb.ModelOptions{Dropout: 0.5},
	})
	if err != nil {
		t.Fatal(err)
	}
	if epochs != 4 {
		t.Errorf("%d epochs were reported, want 4", epochs)
	}
}
