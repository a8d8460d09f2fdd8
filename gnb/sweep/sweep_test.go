package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/internal/testneed"
)

// load loads a dataset for a test.
func load(t *testing.T, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// sweepSet is a graph on which a trial takes about 0.1 s.
const sweepSet = "planted?nodes=600&classes=4&features=8&seed=3"

func sweepOptions(t *sweep.Trial) gnb.TrainOptions {
	return gnb.TrainOptions{
		OptimizerOptions: gnb.OptimizerOptions{LR: t.LogFloat("lr", 1e-4, 1e-1), Batch: 150, Epochs: 3},
		ModelOptions:     gnb.ModelOptions{Hidden: sweep.Choice(t, "hidden", 4, 8, 16), Dropout: t.Float("dropout", 0.1, 0.8)},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{4, 4}},
		LaunchOptions:    gnb.LaunchOptions{Seed: 1, Workers: 1, Threads: 1},
	}
}

// outline returns the parts of a sweep that must be the same in two sweeps: everything except
// times, paths and options that change no result.
func outline(t *testing.T, s *sweep.Study) string {
	t.Helper()
	var b strings.Builder
	for _, r := range s.Trials {
		r.Seconds, r.Run = 0, ""
		r.Options.TensorBoard, r.Options.Quiet, r.Options.CheckpointEvery, r.Options.KeepCheckpoints, r.Options.Threads = false, false, 0, 0, 0
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// Every method trains its trials, each as a run. Methods that do not learn from trials give the
// same result for every number of concurrent trials; the others give the same result when they are
// repeated.
func TestSweep(t *testing.T) {
	testneed.Raced(t, "it runs a sweep of each method")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	methods := []string{"grid", "random", "sobol", "tpe", "asha"}
	if testing.Short() {
		methods = []string{"grid", "asha"}
	}
	sweeps := 0
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			var outlines []string
			n := 4
			if method == "asha" { // with ASHA, the first trials of a rung continue
				n = 8
			}
			for i, parallel := range []int{2, 2, 1} {
				if learns := method == "tpe" || method == "asha"; learns && i == 2 {
					break
				}
				var mu sync.Mutex
				told := map[string]int{}
				o := sweep.Options{Method: method, Trials: n, Parallel: parallel, Seed: 9, Levels: 2, MinEpochs: 1, Quiet: true, Resume: gnb.Never}
				o.Events = func(r sweep.TrialResult) { mu.Lock(); told[r.State]++; mu.Unlock() }
				s, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o)
				if err != nil {
					t.Fatal(err)
				}
				if len(s.Trials) != n || s.State != runs.StateDone || told["running"] != n || told["done"]+told["stopped"] != n {
					t.Fatalf("%d trials, %s, reported %v", len(s.Trials), s.State, told)
				}
				for i, r := range s.Trials {
					run, err := runs.Open(r.Run)
					if err != nil {
						t.Fatal(err)
					}
					if r.Number != i || len(r.Params) != 3 || len(r.Evaluations) == 0 || r.Options.LR != r.Params[0].Value {
						t.Errorf("trial %d is %+v", i, r)
					}
					if r.State == runs.StateDone && (r.Value != run.ValAccuracy() || run.Result.Epochs != 3) {
						t.Errorf("trial %d has the value %v, but its run has %v after %d epochs", i, r.Value, run.ValAccuracy(), run.Result.Epochs)
					}
				}
				if method == "asha" && told["stopped"] == 0 {
					t.Error("none was stopped")
				}
				read, err := sweep.Open(s.Dir)
				if err != nil || outline(t, read) != outline(t, s) || read.Best().Number != s.Best().Number {
					t.Errorf("the sweep read from disk is\n%s, want\n%s (%v)", outline(t, read), outline(t, s), err)
				}
				outlines = append(outlines, outline(t, s))
				sweeps++
			}
			for _, o := range outlines[1:] {
				if o != outlines[0] {
					t.Errorf("two sweeps differ:\n%s\n%s", outlines[0], o)
				}
			}
		})
	}
	studies, err := sweep.List(t.Context())
	if err != nil || len(studies) != sweeps {
		t.Errorf("%d sweeps are listed (%v), want %d", len(studies), err, sweeps)
	}
}

// A sweep can also minimise the validation loss.
func TestSweepMinimizes(t *testing.T) {
	testneed.NotShort(t, "it runs a sweep of many trials")
	t.Setenv("GNB_RUNS", t.TempDir())
	s, err := sweep.Run(t.Context(), load(t, sweepSet), gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
		o := sweepOptions(t)
		o.BestBy = "loss"
		return o
	}, sweep.Options{Method: "asha", Trials: 8, Metric: "val_loss", Minimize: true, MinEpochs: 1, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	stopped, best := 0, s.Best()
	for _, r := range s.Trials {
		first := r.Evaluations[0].Value
		switch r.State {
		case sweep.StateStopped:
			stopped++
			if better := s.Trials[0].Evaluations[0].Value; r.Number == 1 && first <= better {
				t.Errorf("trial 1 was stopped with the loss %v, but trial 0 had %v", first, better)
			}
		case runs.StateDone:
			if r.Value < best.Value || math.Abs(r.Value-best.Value) > 5 {
				t.Errorf("trial %d has the loss %v, the best trial %v", r.Number, r.Value, best.Value)
			}
		}
	}
	if stopped == 0 {
		t.Error("none was stopped")
	}
}

// A sweep compares trials by the metric of its options or, by default, of the trials'; a metric of nodes is that of the trials'
// runs.
func TestSweepByMetric(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	for name, c := range map[string]struct{ option, trials, want string }{
		"the dataset's":       {"", "", "val_accuracy"},
		"the trials'":         {"", "macro_f1", "val_macro_f1"},
		"by its name":         {"micro_f1", "", "val_micro_f1"},
		"of a split":          {"test_macro_f1", "", "test_macro_f1"},
		"a loss, and trials'": {"val_loss", "macro_f1", "val_loss"},
	} {
		for _, method := range []string{"grid", "asha"} {
			study, err := sweep.Run(t.Context(), ds, gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
				o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: sweep.Choice(t, "hidden", 2, 4), Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{2, 2}}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Workers: 1}, EvaluationOptions: gnb.EvaluationOptions{Metric: c.trials}}
				if c.option == "val_loss" {
					o.BestBy = "loss"
				}
				return o
			}, sweep.Options{Method: method, Metric: c.option, Minimize: c.option == "val_loss", Trials: 2, Quiet: true, Resume: gnb.Never})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, method, err)
			}
			if study.Metric != c.want || study.Best() == nil || !(study.Best().Value > 0) {
				t.Errorf("%s, %s: %s of %+v", name, method, study.Metric, study.Best())
			}
		}
	}
	// The direction is the metric's: the highest loss is not the best.
	_, err := sweep.Run(t.Context(), ds, gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
		o := gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{2, 2}}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, BestBy: "loss"}
		o.Hidden = sweep.Choice(t, "hidden", 2, 4)
		return o
	}, sweep.Options{Method: "grid", Metric: "val_loss", Quiet: true, Resume: gnb.Never})
	if err == nil || !strings.Contains(err.Error(), "val_loss is better when it is lower") {
		t.Errorf("a sweep for the highest loss: %v", err)
	}
}

// A failed trial is reported with its reason and the others continue; if all trials fail, the sweep
// fails.
func TestSweepFailingTrial(t *testing.T) {
	testneed.Raced(t, "it runs several sweeps")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	f := func(t *sweep.Trial) gnb.TrainOptions {
		o := sweepOptions(t)
		if t.Number == 1 {
			o.Hidden, o.Heads = 10, 3
		}
		return o
	}
	s, err := sweep.Run(t.Context(), ds, gnb.GAT, f, sweep.Options{Trials: 3, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Trials[1]; r.State != runs.StateFailed || !strings.Contains(r.Error, "do not divide among 3 heads") || s.Trials[0].State != runs.StateDone || s.Trials[2].State != runs.StateDone {
		t.Errorf("trials %+v", s.Trials)
	}
	if last := s.Sorted()[2]; last.Number != 1 || s.Best().Number == 1 {
		t.Errorf("the last trial is %+v", last)
	}
	for want, f := range map[string]func(*sweep.Trial) gnb.TrainOptions{
		"no val_accuracy to compare": func(t *sweep.Trial) gnb.TrainOptions {
			o := sweepOptions(t)
			o.Eval = "none"
			return o
		},
		"leave RunDir and Resume out": func(t *sweep.Trial) gnb.TrainOptions {
			o := sweepOptions(t)
			o.RunDir = "x"
			return o
		},
	} {
		s, err := sweep.Run(t.Context(), ds, gnb.SAGE, f, sweep.Options{Trials: 2, Quiet: true})
		if err == nil || !strings.Contains(err.Error(), "all 2 trials failed") || !strings.Contains(err.Error(), want) || s.Best() != nil {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestSweepMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	ds := load(t, sweepSet)
	for want, o := range map[string]sweep.Options{
		`Method is "bayes"; it is one of grid`: {Method: "bayes"},
		"cannot be negative":                   {Trials: -1},
		"Reduction is 1":                       {Reduction: 1},
		"is not a sweep's directory":           {Resume: filepath.Join(dir, "none")},
	} {
		if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := sweep.Run(t.Context(), nil, gnb.SAGE, sweepOptions, sweep.Options{}); err == nil {
		t.Error("a sweep without a dataset gave no error")
	}
	if _, err := sweep.Run(t.Context(), ds, nil, sweepOptions, sweep.Options{}); err == nil {
		t.Error("a sweep without a model gave no error")
	}
	if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, nil, sweep.Options{}); err == nil {
		t.Error("a sweep without a function gave no error")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An interrupted sweep resumes, whether it is named or found, and gives the result of an
// uninterrupted one. A finished sweep can be extended. A changed function is detected.
func TestSweepResumes(t *testing.T) {
	testneed.Raced(t, "it runs sweeps twice")
	methods := []string{"tpe", "asha", "grid"}
	if testing.Short() {
		methods = methods[1:]
	}
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			t.Setenv("GNB_RUNS", t.TempDir())
			ds := load(t, sweepSet)
			all := 8
			if method == "tpe" { // TPE learns only after ten trials
				all = 14
			}
			o := sweep.Options{Method: method, Trials: all, Parallel: 2, Seed: 4, MinEpochs: 1, Quiet: true}
			whole, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			o.Events = func(r sweep.TrialResult) {
				if r.Number == all-5 && r.State != runs.StateRunning {
					cancel()
				}
			}
			part, err := sweep.Run(ctx, ds, gnb.SAGE, sweepOptions, o)
			if !errors.Is(err, gnb.ErrInterrupted) || part.State != runs.StateInterrupted || len(part.Trials) < 2 || len(part.Trials) == all || part.Dir == whole.Dir {
				t.Fatalf("%+v (%v)", part, err)
			}
			other := func(t *sweep.Trial) gnb.TrainOptions {
				o := sweepOptions(t)
				o.Epochs++
				return o
			}
			o.Events = nil
			o.Resume = part.Dir
			if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, other, o); err == nil || !strings.Contains(err.Error(), "was trained with another Epochs than the sweep's function now gives it") {
				t.Errorf("another function: %v", err)
			}
			wider := func(t *sweep.Trial) gnb.TrainOptions {
				t.Int("more", 1, 3)
				return sweepOptions(t)
			}
			if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, wider, o); err == nil || !strings.Contains(err.Error(), "the sweep's function now makes it") {
				t.Errorf("a function with more parameters gave %v", err)
			}
			o.Seed++
			if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o); err == nil || !strings.Contains(err.Error(), "with other settings") {
				t.Errorf("another seed: %v", err)
			}
			o.Seed, o.Resume, o.Trials = 4, "", all-2
			shown := func(t *sweep.Trial) gnb.TrainOptions { // options that do not change the result may change
				o := sweepOptions(t)
				o.TensorBoard, o.Quiet, o.CheckpointEvery, o.KeepCheckpoints, o.Threads = true, true, 1, 1, 2
				return o
			}
			again, err := sweep.Run(t.Context(), ds, gnb.SAGE, shown, o)
			if err != nil || again.Dir != part.Dir || len(again.Trials) != all-2 {
				t.Fatalf("%+v (%v), want the sweep resumed in %s", again, err, part.Dir)
			}
			if found, err := filepath.Glob(filepath.Join(part.Dir, "trial-*", "events.out.tfevents.*")); err != nil || len(found) == 0 || len(found) == len(again.Trials) {
				t.Errorf("%d of %d trials were written for TensorBoard (%v), want only the trials with TensorBoard switched on", len(found), len(again.Trials), err)
			}
			o.Trials, o.Dir = all, part.Dir
			again, err = sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o)
			if err != nil || outline(t, again) != outline(t, whole) {
				t.Errorf("the resumed sweep found\n%s\nand the uninterrupted one\n%s (%v)", outline(t, again), outline(t, whole), err)
			}
			o.Resume = gnb.Never
			if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, o); err == nil || !strings.Contains(err.Error(), "already holds a sweep") {
				t.Errorf("a new sweep in the same directory gave %v", err)
			}
		})
	}
}

// cellOptions holds the options of these tests' cells.
type cellOptions struct {
	Dir     string // directory of the sweep
	Workers int
	Epochs  int
	Every   int  // steps between checkpoints
	Hold    bool // only the first two trials begin before an interrupt
}

func TestMain(m *testing.M) { runtest.Main(m, map[string]func([]byte) error{"sweep": runCell}) }

// runCell is a cell that runs a sweep.
func runCell(options []byte) error {
	var o cellOptions
	if err := json.Unmarshal(options, &o); err != nil {
		return err
	}
	ds, err := gnb.Load(context.Background(), sweepSet)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f := func(t *sweep.Trial) gnb.TrainOptions {
		if o.Hold && t.Number >= 2 { // leaves trials to resume on a machine of any speed
			<-ctx.Done()
		}
		t2 := sweepOptions(t)
		t2.Workers, t2.Epochs, t2.CheckpointEvery = o.Workers, o.Epochs, o.Every
		return t2
	}
	s, err := sweep.Run(context.Background(), ds, gnb.SAGE, f, sweep.Options{Method: "random", Trials: 4, Parallel: 2, Seed: 2, Dir: o.Dir, Quiet: true})
	if s != nil {
		fmt.Printf("%d trials, %s\n", len(s.Trials), s.State)
	}
	return err
}

// A sweep that is interrupted or killed at any moment leaves no process behind and resumes to the
// same result.
func TestSweepInterruptedAndKilled(t *testing.T) {
	testneed.Raced(t, "it interrupts and kills sweeps")
	o := cellOptions{Workers: 2, Epochs: 30, Every: 5}
	end := func(dir string) string {
		t.Helper()
		s, err := sweep.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return outline(t, s)
	}
	o.Dir = filepath.Join(t.TempDir(), "whole")
	if c := startCell(t, o); c.Wait(time.Minute) != nil {
		t.Fatal(c.Out.String())
	}
	whole := end(o.Dir)
	for name, signal := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		o.Dir = filepath.Join(t.TempDir(), name)
		o.Hold = true
		c := startCell(t, o)
		// Wait until the first trials have evaluated a few times, so that there is something to
		// resume.
		deadline := time.Now().Add(30 * time.Second)
		for {
			if m, _ := filepath.Glob(filepath.Join(o.Dir, "trial-0000", "checkpoints", "*")); len(m) > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no checkpoint was written; the cell printed:\n%s", c.Out.String())
			}
			time.Sleep(5 * time.Millisecond)
		}
		_ = c.Cmd.Process.Signal(signal)
		err := c.Wait(10 * time.Second)
		if err == nil {
			t.Errorf("%s: the cell ended without an error:\n%s", name, c.Out.String())
		}
		gone := time.Now().Add(5 * time.Second)
		for len(c.Processes()) > 0 && time.Now().Before(gone) {
			time.Sleep(20 * time.Millisecond)
		}
		if left := c.Processes(); len(left) > 0 {
			t.Errorf("%s: %d processes still run", name, len(left))
		}
		if s, err := sweep.Open(o.Dir); err != nil || len(s.Trials) == 4 || signal == syscall.SIGINT && s.State != runs.StateInterrupted {
			t.Errorf("%s: %+v (%v)", name, s, err)
		}
		o.Hold = false
		if c := startCell(t, o); c.Wait(time.Minute) != nil {
			t.Fatal(c.Out.String())
		}
		if got := end(o.Dir); got != whole {
			t.Errorf("after %s, the resumed sweep found\n%s\nand the uninterrupted one\n%s", name, got, whole)
		}
	}
}

// A trial's run has the requested number of ranks, and all of them train.
func TestSweepTrainsEveryRank(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	s, err := sweep.Run(t.Context(), load(t, sweepSet), gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
		o := sweepOptions(t)
		o.Workers = 2
		return o
	}, sweep.Options{Trials: 2, Parallel: 2, Method: "random", Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Trials {
		run, err := runs.Open(r.Run)
		if err != nil {
			t.Fatal(err)
		}
		seeds := run.Result.WorkerSeeds
		if len(seeds) != 2 || seeds[0] == 0 || seeds[1] == 0 || math.Abs(float64(seeds[0]-seeds[1])) > 0.1*float64(seeds[0]) {
			t.Errorf("trial %d: the workers trained on %v seeds", r.Number, seeds)
		}
	}
}

func startCell(t *testing.T, o cellOptions) *runtest.Cell {
	t.Helper()
	return runtest.StartCell(t, "sweep", filepath.Join(filepath.Dir(o.Dir), "runs"), o)
}

// Three trials on a dataset in memory pack the dataset once.
func TestTrialsShareOneDataset(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	ds.Meta.Name = "shared by trials"
	files := map[string]bool{}
	look := func(sweep.TrialResult) {
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Error(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "memfd:dataset shared by trials") {
				if info, err := os.Stat(fd); err == nil {
					files[fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)] = true
				}
			}
		}
	}
	s, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, sweep.Options{Method: "random", Trials: 3, Quiet: true, Events: look})
	if err != nil || len(s.Trials) != 3 {
		t.Fatalf("%v, %v", s, err)
	}
	if len(files) != 1 {
		t.Errorf("the dataset was packed %d times, want once", len(files))
	}
}

type surfaceArgs struct{ Dir string }

// surface calls the package's exported functions in a worker.
var surface = gnb.Program("test.sweep.surface", func(w *gnb.Worker, a surfaceArgs) error {
	ctx := context.Background()
	if _, err := sweep.Run(ctx, nil, gnb.SAGE, nil, sweep.Options{}); err == nil || !strings.Contains(err.Error(), "a worker cannot start a run") {
		return fmt.Errorf("a sweep within a worker: %w", err)
	}
	if got := sweep.Choice(&sweep.Trial{}, "hidden", 16, 32); got != 16 {
		return fmt.Errorf("a trial outside of a search chooses %d", got)
	}
	if _, err := sweep.Open(filepath.Join(a.Dir, "none")); err == nil {
		return errors.New("opened a sweep where there is none")
	}
	_, err := sweep.List(ctx)
	return err
})

func TestSurfaceInWorkers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(dir, "empty"))
	if _, err := gnb.Launch(t.Context(), surface, surfaceArgs{dir}, gnb.LaunchOptions{Workers: 2, Threads: 1, Quiet: true, RunDir: filepath.Join(dir, "run")}); err != nil {
		t.Fatal(err)
	}
}
