package gnb_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/tbevents/tbread"
	"github.com/graphnb/graphnb/internal/testneed"
)

// stepsOf returns the steps of a tag's points and fails the test if they do not ascend.
func stepsOf(t *testing.T, points []tbread.Point) (out []int64) {
	t.Helper()
	for i, p := range points {
		out = append(out, p.Step)
		if i > 0 && (p.Step <= points[i-1].Step || p.Time < points[i-1].Time) {
			t.Errorf("step %d at %v comes after step %d at %v", p.Step, p.Time, points[i-1].Step, points[i-1].Time)
		}
	}
	return out
}

// The events of a live run equal its metrics and the events of an export after the run.
func TestTensorBoard(t *testing.T) {
	ds := load(t, smallSet)
	dir := t.TempDir()
	run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, RunDir: filepath.Join(dir, "run"), TensorBoard: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 200, LR: 0.02}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, EvaluationOptions: gnb.EvaluationOptions{WatchTest: true}})
	ended := time.Now()
	live := tbread.File(t, run.Dir)
	got := tbread.Scalars(t, live)
	losses, err := run.Losses()
	if err != nil || len(losses) == 0 || len(got["loss/step"]) != len(losses) {
		t.Fatalf("%d losses of %d steps (%v)", len(got["loss/step"]), len(losses), err)
	}
	stepsOf(t, got["loss/step"])
	for i, p := range got["loss/step"] {
		if p.Step != int64(i+1) || p.Value != float64(float32(losses[i])) || p.Time < float64(run.Config.Created.Unix()) || p.Time > float64(ended.Unix()+1) {
			t.Errorf("loss %d is %+v, want %v", i, p, losses[i])
		}
		if lr := got["learning_rate"][i]; lr.Value != float64(float32(0.02)) {
			t.Errorf("learning rate %v", lr)
		}
	}
	perEpoch := run.Result.Steps / 3
	for _, tag := range []string{"loss/epoch", "accuracy/train", "accuracy/val", "accuracy/test", "epoch_seconds", "stages/forward", "stages/sample"} {
		if s := stepsOf(t, got[tag]); !slices.Equal(s, []int64{perEpoch, 2 * perEpoch, 3 * perEpoch}) {
			t.Errorf("%s has points at the steps %v", tag, s)
		}
	}
	if p := got["loss/epoch"][2]; p.Value != float64(float32(run.Loss())) {
		t.Errorf("the last epoch's loss is %v, want %v", p, run.Loss())
	}
	sum := 0.0
	for tag, p := range got {
		if strings.HasPrefix(tag, "stages/") {
			sum += p[0].Value
		}
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("the stages' shares add up to %v", sum)
	}
	text := strings.Join(tbread.Lines(t, live), "\n")
	for _, want := range []string{`"Hidden"`, `double 0.02`, `_hparams_/session_end_info`} {
		if !strings.Contains(text, want) {
			t.Errorf("the hyper-parameters lack %s:\n%s", want, text)
		}
	}
	out := filepath.Join(dir, "out [1]")
	t.Setenv("GNB_RUNS", dir)
	if err := os.MkdirAll(filepath.Join(out, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "run", "events.out.tfevents.0000000001.r.gnb"), nil, 0o600); err != nil { // an event file with an early date
		t.Fatal(err)
	}
	for range 2 { // the second export replaces the first
		if err := runs.Export(t.Context(), run, runs.ExportOptions{TensorBoard: out, Follow: true}); err != nil {
			t.Fatal(err)
		}
	}
	if again := tbread.Lines(t, tbread.File(t, filepath.Join(out, "run"))); strings.Join(again, "\n") != text {
		t.Error("the events of the export differ from those of the live run")
	}
}

// The event files of a resumed run have each step once.
func TestTensorBoardAfterResume(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	ds := load(t, smallSet)
	run := pausedAt(t, phases, "iteration 1 3", gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 4, CheckpointEvery: 3, TensorBoard: true})
	got := tbread.Scalars(t, tbread.File(t, run.Dir))
	if s := stepsOf(t, got["loss/step"]); int64(len(s)) != run.Result.Steps || s[len(s)-1] != run.Result.Steps {
		t.Errorf("%d steps to %d, want each of %d", len(s), s[len(s)-1], run.Result.Steps)
	}
	if len(got["log/paused"]) > 1 || len(got["loss/epoch"]) != 3 {
		t.Errorf("paused %v, epochs %v", got["log/paused"], got["loss/epoch"])
	}
}

// logging logs a value of its own in each epoch.
var logging = gnb.Program("test.logging", func(w *gnb.Worker, p pauses) error {
	for epoch := range w.Epochs(4) {
		w.Log("epoch", epoch, "val_f1", 0.25*float64(epoch))
		p.point(w, fmt.Sprint("end ", epoch))
	}
	return nil
})

// A logged value is in the run's result, where filters find it, and in TensorBoard, once for each epoch also if the run
// was interrupted and resumed.
func TestLoggedValues(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	run := pausedAt(t, logging, "end 2", gnb.LaunchOptions{Workers: 2, Threads: 1, TensorBoard: true})
	if v, ok := run.Result.Values["epoch"]; ok || run.Value("val_f1") != 0.75 {
		t.Errorf("val_f1 is %v, epoch %v (%v)", run.Value("val_f1"), v, ok)
	}
	var got []float64
	for _, p := range tbread.Scalars(t, tbread.File(t, run.Dir))["log/val_f1"] {
		got = append(got, p.Value)
	}
	if !slices.Equal(got, []float64{0, 0.25, 0.5, 0.75}) {
		t.Errorf("TensorBoard has %v", got)
	}
	if found, err := (runs.Table{run}).Filter("val_f1>0.7"); err != nil || len(found) != 1 {
		t.Errorf("a filter finds %v (%v)", found, err)
	}
}
