//go:build fixtures

package gnb_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
)

// TensorBoard's own reader finds the run's metrics in its event files, even after an interrupt, and
// its settings as hyper-parameters. TENSORBOARD_PYTHON is a Python with TensorBoard ("make
// fixtures").
func TestTensorBoardReadsRuns(t *testing.T) {
	python := os.Getenv("TENSORBOARD_PYTHON")
	if python == "" {
		t.Fatal(`set TENSORBOARD_PYTHON to a Python with tensorboard, or run "make fixtures"`)
	}
	ds := load(t, smallSet)
	whole := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, RunDir: filepath.Join(t.TempDir(), "run"), TensorBoard: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 200, LR: 0.02}, ModelOptions: gnb.ModelOptions{Hidden: 24, Dropout: 0.5}})
	resumed := pausedAt(t, phases, "iteration 1 3", gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 4, CheckpointEvery: 3, TensorBoard: true})
	for _, run := range []*runs.Run{whole, resumed} {
		raw, err := exec.Command(python, "-W", "ignore", filepath.Join("..", "internal", "tbevents", "testdata", "fixture.py"), "read", run.Dir).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		var got struct {
			Scalars map[string][][3]float64 `json:"scalars"`
			Start   string                  `json:"_hparams_/session_start_info"`
			End     string                  `json:"_hparams_/session_end_info"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		steps, err := run.Steps()
		if err != nil {
			t.Fatal(err)
		}
		losses, lrs := got.Scalars["loss/step"], got.Scalars["learning_rate"]
		if len(losses) != len(steps) || len(lrs) != len(steps) || len(steps) == 0 {
			t.Fatalf("%d losses and %d learning rates of %d steps", len(losses), len(lrs), len(steps))
		}
		for i, s := range steps {
			if losses[i][0] != float64(s.Total) || losses[i][1] != float64(float32(s.Loss)) || math.Abs(lrs[i][1]-s.LR) > 1e-6*s.LR {
				t.Errorf("step %d has the values %v and %v, want %+v", i, losses[i], lrs[i], s)
			}
		}
		if len(got.Scalars["loss/epoch"]) != 3 || len(got.Scalars["accuracy/val"]) == 0 {
			t.Errorf("epochs %v, validation %v", got.Scalars["loss/epoch"], got.Scalars["accuracy/val"])
		}
		if !strings.Contains(got.Start, `key: "workers"`) || !strings.Contains(got.Start, run.Config.ID) || !strings.Contains(got.End, "STATUS_SUCCESS") {
			t.Errorf("the hyper-parameters are %s, %s", got.Start, got.End)
		}
	}
}
