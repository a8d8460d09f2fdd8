package gnb_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// stopping trains a network, and chooses its best epoch by values that the argument scripts.
var stopping = gnb.Program("test.stopping", func(w *gnb.Worker, a stopArgs) error {
	net := gnb.GCN.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 4, Out: w.Dataset().Classes(), Layers: 1})
	opt := w.Adam(net, 0.05)
	w.BestBy(net, gnb.Best{By: a.By, Minimize: a.Minimize, Patience: a.Patience})
	for epoch := range w.Epochs(len(a.Scores)) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4}}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		score := a.Scores[epoch]
		if w.Rank() > 0 {
			score += 100 * float64(epoch) // rank 0's value counts
		}
		if score != skipped {
			w.Log("epoch", epoch, "score", score, "twice", 2*score)
		}
		pauses{a.At}.point(w, fmt.Sprint("end ", epoch))
	}
	return nil
})

type stopArgs struct {
	By       string
	Minimize bool
	Patience int
	Scores   []float64
	At       string
}

// skipped is a score that is not logged.
const skipped = -1e9

func stop(t *testing.T, ds *gnb.Dataset, a stopArgs) *runs.Run {
	t.Helper()
	run, err := gnb.Launch(t.Context(), stopping, a, gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// The best epoch is the first with the best value, and Patience counts epochs from it, at epochs that have a value.
func TestBestBy(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, smallSet)
	for name, c := range map[string]struct {
		stopArgs
		best, epochs int
	}{
		"highest":        {stopArgs{Patience: 2, Scores: []float64{1, 3, 3, 2, 9}}, 1, 4},
		"lowest":         {stopArgs{Minimize: true, Scores: []float64{1, 0.5, 3, 0.5, 9}}, 1, 5},
		"seldom":         {stopArgs{Patience: 2, Scores: []float64{5, skipped, skipped, skipped, 4, 9}}, 0, 5},
		"never stops":    {stopArgs{Scores: []float64{5, 4, 3, 2}}, 0, 4},
		"last improves":  {stopArgs{Patience: 1, Scores: []float64{1, 2, 3}}, 2, 3},
		"stops at once":  {stopArgs{Patience: 1, Scores: []float64{3, 2, 9}}, 0, 2},
		"below zero":     {stopArgs{Minimize: true, Patience: 2, Scores: []float64{-3, -4, -2, -1, -9}}, 1, 4},
		"begins skipped": {stopArgs{Patience: 1, Scores: []float64{skipped, 2, skipped, 1, 5}}, 1, 4},
	} {
		c.By = "score"
		run := stop(t, ds, c.stopArgs)
		if run.Value("best_epoch") != float64(c.best) || run.Result.Epochs != c.epochs || run.Value("score") != c.Scores[c.best] || run.Value("twice") != 2*c.Scores[c.best] {
			t.Errorf("%s: best epoch %v with %v after %d epochs, want %d and %d", name, run.Value("best_epoch"), run.Result.Values, run.Result.Epochs, c.best, c.epochs)
		}
		if _, err := os.Stat(run.BestWeights()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var said []string
	_, err := gnb.Launch(t.Context(), stopping, stopArgs{By: "typo", Scores: []float64{1}}, gnb.LaunchOptions{
		Data:    ds,
		Threads: 1,
		Quiet:   true,
		RunDir:  filepath.Join(t.TempDir(), "run"),
		Events:  func(e runs.Event) { said = append(said, e.Text) },
	})
	if err != nil || !strings.Contains(strings.Join(said, "\n"), `nothing was logged as "typo", so no epoch is the best; logged: epoch, score, twice`) {
		t.Errorf("a wrong name is reported as %q (%v)", said, err)
	}
}

// A run that is interrupted has the best epoch, the weights and the patience of one that was not.
func TestBestByResumes(t *testing.T) {
	testneed.NotShort(t, "it interrupts runs")
	ds := load(t, smallSet)
	a := stopArgs{By: "score", Patience: 2, Scores: []float64{1, 3, 2, 1, 9}}
	whole := stop(t, ds, a)
	for _, at := range []string{"end 0", "end 1", "end 2", "end 3"} {
		a.At = at
		o := gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1}
		run := interruptedAt(t, stopping, a, o)
		if run.Value("best_epoch") != 1 || run.Result.Epochs != 4 || run.Value("score") != 3 {
			t.Errorf("paused at %q: best epoch %v, score %v, %d epochs", at, run.Value("best_epoch"), run.Value("score"), run.Result.Epochs)
		}
		x, errX := os.ReadFile(whole.BestWeights())
		y, errY := os.ReadFile(run.BestWeights())
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("paused at %q: the best weights differ (%v, %v)", at, errX, errY)
		}
	}
}

// Train evaluates the test split once, with the best epoch's weights. The result and both files of weights are those of a
// run that evaluates it each time.
func TestTestSplitIsEvaluatedOnce(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, smallSet)
	for name, o := range map[string]gnb.TrainOptions{
		"metric":     {OptimizerOptions: gnb.OptimizerOptions{Epochs: 6}, EvaluationOptions: gnb.EvaluationOptions{Patience: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"loss":       {OptimizerOptions: gnb.OptimizerOptions{Epochs: 5, LR: 0.5}, BestBy: "loss", ModelOptions: gnb.ModelOptions{Norm: "batch", Dropout: 0.5}},
		"embedding":  {OptimizerOptions: gnb.OptimizerOptions{Epochs: 4}, ModelOptions: gnb.ModelOptions{Embedding: 8, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 2}},
		"sampled":    {OptimizerOptions: gnb.OptimizerOptions{Epochs: 3}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"not at all": {OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
	} {
		o.Threads, o.Batch, o.Hidden, o.LR = 1, 100, 8, max(o.LR, 0.1)
		count := func(run *runs.Run) (n map[string]int) {
			n = map[string]int{}
			if err := run.Events(func(e runs.Event) {
				for _, v := range e.Values {
					if e.Kind == runs.KindMetrics {
						n[v.Name]++
					}
					if v.Name == "test_accuracy" && o.Epochs > 0 && !o.WatchTest && float64(e.Epoch) != run.Value("best_epoch") {
						t.Errorf("%s: the test split is reported for epoch %d, not for the best one, %v", name, e.Epoch, run.Value("best_epoch"))
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		once := train(t, ds, o)
		n := count(once)
		o.WatchTest = true
		each := train(t, ds, o)
		if m := count(each); m["test_accuracy"] != n["val_accuracy"] || n["test_accuracy"] != min(1, n["val_accuracy"]) {
			t.Errorf("%s: %v, watched %v", name, n, m)
		}
		for _, value := range []string{"val_accuracy", "test_accuracy", "best_epoch", "val_loss"} {
			if a, b := once.Value(value), each.Value(value); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Errorf("%s: %s is %v, watched %v", name, value, a, b)
			}
		}
		for _, file := range []string{"model.safetensors", "best.safetensors"} {
			a, errA := os.ReadFile(filepath.Join(once.Dir, file))
			b, errB := os.ReadFile(filepath.Join(each.Dir, file))
			if !bytes.Equal(a, b) || (errA == nil) != (errB == nil) {
				t.Errorf("%s: %s differs (%v, %v)", name, file, errA, errB)
			}
		}
	}
}
