package gnb_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	o := gnb.TrainOptions{Epochs: 4, Batch: 256, Seed: 3, Device: "cpu", CheckpointEvery: 2, Quiet: true}
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
