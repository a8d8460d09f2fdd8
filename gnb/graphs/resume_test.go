package graphs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops/nn"
)

// killEnv is the forward pass of training, counted from 1, at which a worker kills its process; unset means never.
const killEnv = "GRAPHS_TEST_KILL"

// mortal is a GIN that kills its process as killEnv says.
type mortal struct {
	*nn.GIN
	left int
}

var mortalModel = gnb.Model("test.mortal", func(s gnb.ModelConfig) *mortal {
	left, _ := strconv.Atoi(os.Getenv(killEnv))
	return &mortal{nn.NewGINModel(s), left}
})

func (m *mortal) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if i == 0 && m.left > 0 && f.Train() {
		if m.left--; m.left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	return m.GIN.Layer(f, i, b, h)
}

// A run whose worker is killed at any step resumes to the same weights and results, with batch norms, dropout and a best epoch.
func TestResumesToTheBit(t *testing.T) {
	ds := only(rings(120, 11), true, 0)
	o := quick()
	o.Model, o.Epochs, o.Batch, o.Norm, o.Dropout, o.CheckpointEvery = mortalModel, 6, 16, "batch", 0.2, 1
	o.RunDir = filepath.Join(t.TempDir(), "whole")
	whole := train(t, ds, o)
	for range 3 {
		at := 1 + rand.IntN(5*6)
		t.Run(fmt.Sprintf("killed at pass %d", at), func(t *testing.T) {
			t.Setenv(killEnv, strconv.Itoa(at))
			o := o
			o.RunDir = filepath.Join(t.TempDir(), "killed")
			if _, err := graphs.Train(t.Context(), ds, o); err == nil {
				t.Fatal("the kill did not end the run")
			}
			t.Setenv(killEnv, "")
			killed, err := runs.Open(o.RunDir)
			if err != nil {
				t.Fatal(err)
			}
			had, err := graphs.OptionsOf(killed)
			if err != nil {
				t.Fatal(err)
			}
			had.Resume, had.RunDir, had.Threads, had.Quiet = o.RunDir, "", 1, true
			resumed, err := graphs.Train(t.Context(), ds, had)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(weights(t, whole), weights(t, resumed)) {
				t.Error("the weights differ from those of a run without the kill")
			}
			if a, b := whole.Result.Values, resumed.Result.Values; a["test_accuracy"] != b["test_accuracy"] || a["best_epoch"] != b["best_epoch"] || a["val_loss"] != b["val_loss"] {
				t.Errorf("the values are %v, want %v", b, a)
			}
		})
	}
}

func TestSweepOfGraphs(t *testing.T) {
	ds := only(rings(100, 12), false, 1)
	study, err := sweep.RunTask(t.Context(), ds, graphs.Task, func(trial *sweep.Trial) graphs.Options {
		o := quick()
		o.Epochs = 4
		o.LR = trial.LogFloat("lr", 1e-3, 1e-2)
		o.Pool = sweep.Choice(trial, "pool", "sum", "mean")
		return o
	}, sweep.Options{Trials: 4, Dir: t.TempDir(), Metric: "val_mae", Minimize: true})
	if err != nil {
		t.Fatal(err)
	}
	best := study.Best()
	for _, trial := range study.Trials {
		if best == nil || !(best.Value > 0) || trial.Value < best.Value {
			t.Errorf("the best trial is %v, and another is %v", best, trial)
		}
	}
	if _, err := graphs.Train(t.Context(), nil, quick()); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a dataset: %v", err)
	}
}
