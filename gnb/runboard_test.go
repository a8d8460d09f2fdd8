package gnb_test

import (
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

// stepsOf are the steps of a tag, which must ascend.
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

// A live run's events are its metrics, and those of an export afterwards.
func TestTensorBoard(t *testing.T) {
	ds := load(t, smallSet)
	dir := t.TempDir()
	run := train(t, ds, gnb.TrainOptions{Workers: 2, Threads: 1, Epochs: 3, Batch: 200, Hidden: 8, LR: 0.02, RunDir: filepath.Join(dir, "run"), TensorBoard: true})
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
			t.Errorf("%s at steps %v", tag, s)
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
	for _, want := range []string{`"hidden"`, `double 0.02`, `_hparams_/session_end_info`} {
		if !strings.Contains(text, want) {
			t.Errorf("the hyper-parameters lack %s:\n%s", want, text)
		}
	}
	out := filepath.Join(dir, "out [1]")
	t.Setenv("GNB_RUNS", dir)
	if err := os.MkdirAll(filepath.Join(out, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "run", "events.out.tfevents.0000000001.r.gnb"), nil, 0o600); err != nil { // of long ago
		t.Fatal(err)
	}
	for range 2 { // the second time in place of the first
		if err := runs.Export(t.Context(), run, runs.ExportOptions{TensorBoard: out, Follow: true}); err != nil {
			t.Fatal(err)
		}
	}
	if again := tbread.Lines(t, tbread.File(t, filepath.Join(out, "run"))); strings.Join(again, "\n") != text {
		t.Error("exported afterwards, the run has other events than while it went")
	}
}

// A resumed run has each step once.
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
