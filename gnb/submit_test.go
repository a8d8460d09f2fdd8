package gnb_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run submitted to Slurm has the losses of a run on this machine. If it is interrupted, its job
// writes a checkpoint and ends, and the next launch resumes it and reaches the same weights.
func TestSubmit(t *testing.T) {
	if testing.Short() {
		t.Skip("three jobs of a Slurm take seconds")
	}
	clustertest.Slurm(t).Setenv(t)
	t.Setenv("GNB_RUNS", t.TempDir())
	ctx := context.Background()
	ds, err := gnb.Load(ctx, "planted?nodes=2000&features=8&classes=3&seed=2")
	if err != nil {
		t.Fatal(err)
	}
	o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 4, Batch: 256}, LaunchOptions: gnb.LaunchOptions{Seed: 3, Device: "cpu", CheckpointEvery: 2, Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	here := o
	here.Workers = 2
	want, err := gnb.Train(ctx, ds, gnb.SAGE, here)
	if err != nil {
		t.Fatal(err)
	}
	o.Cluster = gnb.Slurm{Nodes: 2, Options: []string{"--time=10"}}
	start := time.Now()
	got, err := gnb.Train(ctx, ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("submitted and trained in %v", time.Since(start))
	if !maps.Equal(got.Result.Weights, want.Result.Weights) {
		t.Errorf("the weights of the job are %v, those of workers on this machine are %v", got.Result.Weights, want.Result.Weights)
	}
	if _, err := os.Stat(filepath.Join(runfile.JobDir(got.Dir), "batch.sh")); err != nil {
		t.Error(err)
	}

	// The job may start its ranks by mpirun.
	if testneed.Soak.Here() {
		o.Cluster = gnb.Slurm{Nodes: 1, RanksPerNode: 2, Options: []string{"--time=10"}, Launcher: filepath.Join(clustertest.OpenMPI(t).Bin, "mpirun")}
		o.RunDir = filepath.Join(t.TempDir(), "mpirun")
		if got, err = gnb.Train(ctx, ds, gnb.SAGE, o); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got.Result.Weights, want.Result.Weights) {
			t.Errorf("the weights of the job of mpirun are %v, those of workers on this machine are %v", got.Result.Weights, want.Result.Weights)
		}
		o.Cluster, o.RunDir = gnb.Slurm{Nodes: 2, Options: []string{"--time=10"}}, ""
	}

	// The run is interrupted after its second epoch and resumes from its checkpoint.
	o.Epochs, o.Seed, here.Epochs, here.Seed = 60, 4, 60, 4
	if want, err = gnb.Train(ctx, ds, gnb.SAGE, here); err != nil {
		t.Fatal(err)
	}
	watched, stop := context.WithCancel(ctx)
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
			stop()
		}
	}
	cut, err := gnb.Train(watched, ds, gnb.SAGE, o)
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the interrupted run ended with %v", err)
	}
	o.Events = nil
	again, err := gnb.Train(ctx, ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if again.Dir != cut.Dir {
		t.Errorf("the second launch used the run %s, but the interrupted run is %s", again.Dir, cut.Dir)
	}
	if !maps.Equal(again.Result.Weights, want.Result.Weights) {
		t.Errorf("the weights of the interrupted run are %v, those of an uninterrupted run are %v", again.Result.Weights, want.Result.Weights)
	}
	log, err := os.ReadFile(filepath.Join(runfile.JobDir(again.Dir), "output"))
	if err != nil || !strings.Contains(string(log), "resuming run") {
		t.Errorf("the jobs printed %q, %v", log, err)
	}
}

// A job starts with the weights that another run had when the job was submitted, and is measured by the metric of its options.
// Requeued, it resumes from its checkpoint alone.
func TestSubmitFrom(t *testing.T) {
	testneed.Raced(t, "it runs jobs of a Slurm")
	slurm := clustertest.Slurm(t)
	slurm.Setenv(t)
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, "planted?nodes=2000&features=8&classes=3&seed=2")
	o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 256}, LaunchOptions: gnb.LaunchOptions{Seed: 3, Device: "cpu", Workers: 2, CheckpointEvery: 2, Quiet: true}, EvaluationOptions: gnb.EvaluationOptions{Metric: "macro_f1"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	train := func(o gnb.TrainOptions) *runs.Run {
		t.Helper()
		r, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := train(o)
	o.From, o.Epochs, o.Seed = first.Dir, 40, 4
	want := train(o)
	o.Workers, o.Cluster, o.RunDir = 0, gnb.Slurm{Nodes: 2, Options: []string{"--time=10"}}, filepath.Join(t.TempDir(), "job")
	requeue := sync.OnceFunc(func() {
		var job struct{ ID string }
		err := errors.Join(os.RemoveAll(first.Dir), runfile.ReadJSON("test", filepath.Join(runfile.JobDir(o.RunDir), "job.json"), &job))
		if err != nil {
			t.Error(err)
		}
		if out, err := slurm.Command("scancel", "--signal=TERM", job.ID).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
			requeue()
		}
	}
	got := train(o)
	log, err := os.ReadFile(filepath.Join(runfile.JobDir(got.Dir), "output"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"started with best.safetensors of run " + first.Config.ID, "resuming run"} {
		if !strings.Contains(string(log), text) {
			t.Errorf("the jobs printed no %q:\n%s", text, log)
		}
	}
	if !maps.Equal(got.Result.Weights, want.Result.Weights) || !maps.Equal(got.Result.Values, want.Result.Values) {
		t.Errorf("the job has the results %v, workers on this machine %v, or other weights", got.Result.Values, want.Result.Values)
	}
	if a, b := got.Config.From, want.Config.From; a == nil || a.Run != b.Run || !maps.Equal(a.Weights, b.Weights) {
		t.Errorf("config.json of the job has %+v, and on this machine %+v", a, b)
	}
}
