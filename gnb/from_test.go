package gnb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// small are options of a run of a second.
func small() gnb.TrainOptions {
	return gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Resume: gnb.Never, Quiet: true, Device: "cpu"}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 128}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}}
}

// printed trains and returns the run with what it printed.
func printed(t *testing.T, ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, string, error) {
	t.Helper()
	var b strings.Builder
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindPrint {
			b.WriteString(e.Text + "\n")
		}
	}
	r, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	return r, b.String(), err
}

// The best weights are those of the best epoch that the run reports, also if the steps after its checkpoint were lost
// and come otherwise: with other settings, or with another number of ranks.
func TestBestWeightsOfAnAbandonedPast(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	for name, change := range map[string]func(o *gnb.TrainOptions){
		"a rate of 0":   func(o *gnb.TrainOptions) { o.LR = 1e-30 },
		"no evaluation": func(o *gnb.TrainOptions) { o.Eval = "none" },
		"two workers":   func(o *gnb.TrainOptions) { o.Workers = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.Epochs, o.CheckpointEvery, o.KeepCheckpoints, o.LR = 12, 1, 1000, 0.002
			r, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			perEpoch := r.Result.Steps / 12
			// As after a kill: the newest checkpoint is of the third epoch, and the best weights are later ones.
			for step := r.Result.Steps; step > 3*perEpoch; step-- {
				if err := os.Remove(checkpoint.Path(filepath.Join(r.Dir, "checkpoints"), step)); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range []string{"result.json", "model.safetensors"} {
				if err := os.Remove(filepath.Join(r.Dir, f)); err != nil {
					t.Fatal(err)
				}
			}
			if step := bestStep(t, r); step <= 3*perEpoch {
				t.Fatalf("the best weights are of step %d, before the checkpoint's", step)
			}
			change(&o)
			o.Resume, o.ResumeChanged, o.Epochs = r.Dir, true, 6
			r, err = gnb.Train(t.Context(), ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			if o.Eval == "none" { // the best epoch is still the checkpoint's
				if got := bestStep(t, r); got > 3*perEpoch {
					t.Errorf("best.safetensors is of step %d, which the run has abandoned", got)
				}
			} else if got, want := bestStep(t, r), int64(r.Value("best_epoch")+1)*perEpoch; got != want {
				t.Errorf("best.safetensors is of step %d, and the best epoch %v ends at step %d", got, r.Value("best_epoch"), want)
			}
		})
	}
}

func bestStep(t *testing.T, r *runs.Run) int64 {
	t.Helper()
	_, meta, err := safetensors.ReadFile(r.BestWeights())
	if err != nil {
		t.Fatal(err)
	}
	step, err := strconv.ParseInt(meta["gnb_step"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// Every run ends with a checkpoint of its last step, from which it can go on.
func TestFinishedRunGoesOn(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	o := small()
	r, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, step, _, err := checkpoint.Latest(filepath.Join(r.Dir, "checkpoints")); err != nil || step != r.Result.Steps {
		t.Fatalf("the last checkpoint is of step %d of %d, %v", step, r.Result.Steps, err)
	}
	o.Epochs = 5
	whole, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Resume, o.ResumeChanged = r.Dir, true
	more, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(numbersIn(t, whole.Weights()), numbersIn(t, more.Weights())) || !bytes.Equal(numbersIn(t, whole.BestWeights()), numbersIn(t, more.BestWeights())) {
		t.Error("5 epochs and 3 with 2 more have other weights")
	}
}

// A program that loads its best weights after the loop leaves a checkpoint of its last step, not of what it loaded.
func TestLastCheckpointIsOfTheLastStep(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	r, err := gnb.Launch(t.Context(), loadsBest, none{}, gnb.LaunchOptions{Data: ds, Workers: 1, Resume: gnb.Never, Quiet: true, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	ts, err := checkpoint.Load(checkpoint.Path(filepath.Join(r.Dir, "checkpoints"), r.Result.Steps), nil)
	if err != nil {
		t.Fatal(err)
	}
	final, _, err := safetensors.ReadFile(r.Weights())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ts, func(x safetensors.Tensor) bool { return x.Name == "model0."+final[0].Name })
	if i < 0 || ts[i].F32[0] == final[0].F32[0] {
		t.Errorf("the last checkpoint has the weights that the program loaded after its last step, or not %s", final[0].Name)
	}
}

type none struct{}

var loadsBest = gnb.Program("test.loads.best", func(w *gnb.Worker, _ none) error {
	ds := w.Dataset()
	net := gnb.MLP.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	for epoch := range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{2, 2}, Batch: 64}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		w.SaveBest(net, -float64(epoch))
	}
	w.LoadBest(net)
	return nil
})

// A finished run that cannot go on is refused, and keeps every byte: without a checkpoint, and with settings that its
// checkpoint does not fit.
func TestFinishedRunIsNotOverwritten(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	files := func(dir string) map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				b, err := os.ReadFile(path)
				out[path] = string(b)
				return err
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		made   func(o *gnb.TrainOptions)
		after  func(dir string) error
		change func(o *gnb.TrainOptions)
		kind   error
	}{
		"none was written": {
			made: func(o *gnb.TrainOptions) { o.CheckpointEvery = -1 }, kind: gnb.ErrNoCheckpoint,
			change: func(o *gnb.TrainOptions) { o.Epochs = 5 },
		},
		"none is left": {
			after: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "checkpoints")) }, kind: gnb.ErrNoCheckpoint,
			change: func(o *gnb.TrainOptions) { o.Epochs = 5 },
		},
		"none is left, and nothing changed": {
			after: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "checkpoints")) }, kind: gnb.ErrNoCheckpoint,
		},
		"none is left, and the result is damaged": {
			after: func(dir string) error {
				return errors.Join(os.RemoveAll(filepath.Join(dir, "checkpoints")), os.WriteFile(filepath.Join(dir, "result.json"), []byte("{"), 0o600))
			}, kind: gnb.ErrNoCheckpoint,
		},
		"another width": {change: func(o *gnb.TrainOptions) { o.Hidden = 16 }},
		"TensorBoard's files cannot be replaced": {
			after: func(dir string) error {
				return os.MkdirAll(filepath.Join(dir, "events.out.tfevents.1.a.gnb", "in it"), 0o750)
			},
			change: func(o *gnb.TrainOptions) { o.Epochs, o.TensorBoard = 5, true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			if c.made != nil {
				c.made(&o)
			}
			r, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			if c.after != nil {
				if err := c.after(r.Dir); err != nil {
					t.Fatal(err)
				}
			}
			before := files(r.Dir)
			o.Resume = r.Dir
			if c.change != nil {
				o.ResumeChanged = true
				c.change(&o)
			}
			_, err = gnb.Train(t.Context(), ds, gnb.SAGE, o)
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("resuming gave %v", err)
			}
			after := files(r.Dir)
			for path, b := range before {
				if after[path] != b && filepath.Base(path) != "figure.png" {
					t.Errorf("%s has changed", path)
				}
				delete(after, path)
			}
			for path := range after {
				t.Errorf("%s is new", path)
			}
		})
	}
}

// A run can start with the weights of another one: in a directory of its own, by name and shape, saying what did not match.
func TestFrom(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	first, err := gnb.Train(t.Context(), ds, gnb.SAGE, small())
	if err != nil {
		t.Fatal(err)
	}
	best := numbersIn(t, first.BestWeights())
	for _, c := range []struct {
		name   string
		change func(o *gnb.TrainOptions)
		said   []string // all of these are printed
		same   bool     // the initial weights are those of the first run
	}{
		{"all of them", func(*gnb.TrainOptions) {}, []string{"6 of 6 parameters", first.Config.ID}, true},
		{"by two workers", func(o *gnb.TrainOptions) { o.Workers = 2 }, []string{"6 of 6 parameters"}, true},
		{"a third layer", func(o *gnb.TrainOptions) { o.Layers, o.Fanouts = 3, nil }, []string{"3 of 9 parameters", "convs.1", "[3, 8] there, [8, 8] here", "not there: convs.2"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := small()
			o.LR, o.Epochs, o.From = 1e-30, 1, first.Dir // no weight moves
			c.change(&o)
			r, text, err := printed(t, ds, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range c.said {
				if !strings.Contains(text, s) {
					t.Errorf("the run said %q, which lacks %q", text, s)
				}
			}
			if same := bytes.Equal(numbersIn(t, r.Weights()), best); same != c.same {
				t.Errorf("the initial weights are those of the first run: %v, want %v", same, c.same)
			}
			if f := r.Config.From; f == nil || f.Run != first.Config.ID || len(f.Weights) != 1 {
				t.Errorf("config.json has %+v", f)
			}
			raw, err := os.ReadFile(filepath.Join(r.Dir, "config.json"))
			if err != nil || !json.Valid(raw) || !strings.Contains(string(raw), `"from"`) {
				t.Errorf("config.json: %v", err)
			}
		})
	}
	if b, err := os.ReadFile(first.BestWeights()); err != nil || len(b) == 0 || !bytes.Equal(numbersIn(t, first.BestWeights()), best) {
		t.Error("the first run's weights have changed")
	}
	o := small()
	o.Hidden, o.From = 8, first.Dir
	o.Resume = first.Dir
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Errorf("From and Resume gave %v", err)
	}
	o.Resume, o.From = gnb.Never, filepath.Join(t.TempDir(), "nothing")
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("From a missing directory gave %v", err)
	}
	o.From, o.Hidden = first.Dir, 16
	if r, err := gnb.Train(t.Context(), gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=4&features=5")), gnb.SAGE, o); err == nil || !strings.Contains(err.Error(), "fits model") {
		t.Errorf("From a run of which nothing fits gave %v, %v", r, err)
	}
}

// An interrupted run that started with another run's weights resumes as itself, and one with other weights begins anew.
func TestFromResumes(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	first, err := gnb.Train(t.Context(), ds, gnb.SAGE, small())
	if err != nil {
		t.Fatal(err)
	}
	o := small()
	o.From, o.Epochs, o.Seed = first.Dir, 6, 1
	whole, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch && e.Epoch == 2 {
			cancel()
		}
	}
	cut, err := gnb.Train(ctx, ds, gnb.SAGE, o)
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Skipf("the run ended before its interrupt: %v", err)
	}
	o.Events, o.Resume = nil, ""
	again, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if again.Dir != cut.Dir || !bytes.Equal(numbersIn(t, again.Weights()), numbersIn(t, whole.Weights())) {
		t.Errorf("resumed %s as %s, with other weights or in another directory", cut.Dir, again.Dir)
	}
	// By its directory alone, though the first run is gone: the checkpoint has the weights.
	if err := os.RemoveAll(first.Dir); err != nil {
		t.Fatal(err)
	}
	o.From, o.Resume = "", cut.Dir
	if _, err = gnb.Train(t.Context(), ds, gnb.SAGE, o); err != nil {
		t.Error(err)
	}
}

// Learned rows of nodes start with another run's on the same graph alone.
func TestFromLearnedRows(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	o := small()
	o.Embedding = 5
	first, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	o.From, o.LR, o.Epochs = first.Dir, 1e-30, 1 // no weight moves
	for _, workers := range []int{1, 2} {
		o.Workers = workers
		same, text, err := printed(t, ds, o)
		if err != nil || !strings.Contains(text, "7 of 7 parameters") || !bytes.Equal(numbersIn(t, same.Weights()), numbersIn(t, first.BestWeights())) {
			t.Errorf("%d workers, the same graph: %v, %s", workers, err, text)
		}
	}
	other := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8&seed=9"))
	_, text, err := printed(t, other, o)
	if err != nil || !strings.Contains(text, "6 of 7 parameters") || !strings.Contains(text, "of another graph") {
		t.Errorf("another graph: %v, %s", err, text)
	}
}
