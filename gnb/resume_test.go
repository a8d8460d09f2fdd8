package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// pauses names the moment of a program at which a test interrupts it once: the program reports the
// moment and waits.
type pauses struct{ At string }

func (p pauses) point(w *gnb.Worker, name string) {
	if p.At != name || w.Rank() != 0 {
		return
	}
	f, err := os.OpenFile(filepath.Join(w.RunDir(), "paused"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // the program has paused here before
	}
	_ = f.Close()
	w.Log("paused", 1)
	time.Sleep(20 * time.Second)
}

// phases is a program that uses every part of a position in a run: loops before, within and after
// the epochs; a loop and an epoch that end early; steps outside of loops; two networks, one of them
// created late, that each take a step in the same iteration; kept values; and best weights.
var phases = gnb.Program("test.phases", func(w *gnb.Worker, p pauses) error {
	return runPhases(w, p, gnb.Loader{Fanouts: []int{3, 3}, Batch: 32, MaxSteps: 4})
})

// phasesTogether is the program phases with cooperative batches.
var phasesTogether = gnb.Program("test.phases.together", func(w *gnb.Worker, p pauses) error {
	return runPhases(w, p, gnb.Loader{Fanouts: []int{3, 3}, Batch: 32, MaxSteps: 4, Cooperative: true})
})

func runPhases(w *gnb.Worker, p pauses, loader gnb.Loader) error {
	ds := w.Dataset()
	sizes := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.3}
	p.point(w, "start")
	one := gnb.SAGE.New(w, sizes)
	p.point(w, "between network and optimiser")
	optOne := w.Adam(one, 0.01)
	visits, lowest := 0, math.Inf(1)
	w.Keep("visits", &visits)
	w.Keep("lowest", &lowest)
	for b := range w.Batches("train", loader) {
		w.Step(nn.CrossEntropy(one.Forward(b), b.Labels), optOne)
		visits++
		p.point(w, fmt.Sprint("before epochs ", b.Step))
	}
	p.point(w, "before late network")
	two := gnb.SAGE.New(w, sizes)
	optTwo := w.SGD(two, 0.1)
	full := w.FullGraph("train")
	loader.MaxSteps = 0
	for epoch := range w.Epochs(9) {
		p.point(w, fmt.Sprint("top ", epoch))
		for b := range w.Batches("train", loader) {
			loss := w.Step(nn.CrossEntropy(one.Forward(b), b.Labels), optOne)
			visits++
			p.point(w, fmt.Sprint("between steps ", epoch, b.Step))
			w.Step(nn.CrossEntropy(two.Forward(b), b.Labels), optTwo)
			lowest = min(lowest, loss.Mean())
			p.point(w, fmt.Sprint("iteration ", epoch, b.Step))
			if b.Step == 5 {
				break
			}
		}
		p.point(w, fmt.Sprint("loop ", epoch))
		w.Step(nn.CrossEntropy(two.Forward(full), full.Labels), optTwo)
		p.point(w, fmt.Sprint("outside ", epoch))
		for b := range w.Batches("val", loader) {
			w.Step(nn.CrossEntropy(one.Forward(b), b.Labels), optOne)
			visits++
			p.point(w, fmt.Sprint("second ", epoch, b.Step))
		}
		w.SaveBest(one, w.Evaluate(one, gnb.FullNeighbors, "val").Of("val"))
		p.point(w, fmt.Sprint("end ", epoch))
		if epoch == 2 {
			break
		}
	}
	p.point(w, "after epochs")
	for range 2 {
		for b := range w.Batches("test", loader) {
			w.Step(nn.CrossEntropy(one.Forward(b), b.Labels), optOne)
			visits++
			p.point(w, fmt.Sprint("last ", visits))
		}
	}
	w.Result("visits", float64(visits))
	w.Result("lowest", lowest)
	return nil
}

// steady is a program with steps but without epochs or loops.
var steady = gnb.Program("test.steady", func(w *gnb.Worker, p pauses) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.3})
	opt := w.Adam(net, 0.01)
	full := w.FullGraph("train")
	for i := range 12 {
		w.Step(nn.CrossEntropy(net.Forward(full), full.Labels), opt)
		p.point(w, fmt.Sprint("step ", i))
	}
	return nil
})

// pausedAt runs a program, interrupts it at the given moment, resumes it, and returns the run.
func pausedAt(t *testing.T, p *gnb.ProgramOf[pauses], at string, o gnb.LaunchOptions) *runs.Run {
	t.Helper()
	if at != "" {
		return interruptedAt(t, p, pauses{at}, o)
	}
	o.RunDir, o.Quiet = filepath.Join(t.TempDir(), "run"), true
	run, err := gnb.Launch(t.Context(), p, pauses{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// interruptedAt runs a program whose argument makes it pause, interrupts it there, resumes it, and returns the run.
func interruptedAt[A any](t *testing.T, p *gnb.ProgramOf[A], args A, o gnb.LaunchOptions) *runs.Run {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.RunDir, o.Quiet = filepath.Join(t.TempDir(), "run"), true
	o.Events = func(e runs.Event) {
		if e.Kind == "log" && e.Values[0].Name == "paused" {
			cancel()
		}
	}
	_, err := gnb.Launch(ctx, p, args, o)
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run did not end as interrupted at %v: %v", args, err)
	}
	o.Resume = o.RunDir
	run, err := gnb.Launch(t.Context(), p, args, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// sameRun checks that a resumed run equals an undisturbed one.
func sameRun(t *testing.T, whole, resumed *runs.Run) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(whole.Dir, "*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the run has no weights: %v", err)
	}
	for _, f := range files {
		a, errA := os.ReadFile(f)
		b, errB := os.ReadFile(filepath.Join(resumed.Dir, filepath.Base(f)))
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from the undisturbed run's", filepath.Base(f))
		}
	}
	for name, want := range whole.Result.Values {
		if got := resumed.Value(name); got != want {
			t.Errorf("%s is %v in the resumed run and %v in the undisturbed one", name, got, want)
		}
	}
	a, errA := whole.Steps()
	b, errB := resumed.Steps()
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if len(a) != len(b) {
		t.Fatalf("the resumed run has %d steps, the undisturbed one %d", len(b), len(a))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("step %d is %+v in the resumed run and %+v in the undisturbed one", i, b[i], a[i])
		}
	}
}

// A program that is interrupted at any moment and started again has the weights, values and metrics
// of an undisturbed run.
func TestInterruptAtAnyMomentLosesNothing(t *testing.T) {
	testneed.Raced(t, "it interrupts runs for seconds")
	t.Parallel()
	ds := load(t, "planted?nodes=500&features=8&classes=3&seed=2")
	o := gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 3}
	moments := []string{
		"start", "between network and optimiser", "before epochs 2", "before late network", "top 0", "top 1",
		"between steps 1 3", "iteration 0 4", "iteration 1 3", "loop 1", "outside 1", "second 1 7", "end 1", "end 2", "after epochs",
		"last 32", "last 36",
	}
	if testing.Short() {
		moments = []string{"between steps 1 3", "end 2"}
	}
	whole := pausedAt(t, phases, "", o)
	t.Run("moments", func(t *testing.T) {
		for _, at := range moments {
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				sameRun(t, whole, pausedAt(t, phases, at, o))
			})
		}
	})
}

// The same holds for cooperative batches, which workers have already sampled beyond the interrupted
// step.
func TestInterruptCooperative(t *testing.T) {
	t.Parallel()
	ds := load(t, "planted?nodes=500&features=8&classes=3&seed=2")
	o := gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 3}
	moments := []string{"before epochs 2", "between steps 1 3", "loop 1", "second 1 7"}
	if testing.Short() {
		moments = moments[1:2]
	}
	whole := pausedAt(t, phasesTogether, "", o)
	for _, at := range moments {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			sameRun(t, whole, pausedAt(t, phasesTogether, at, o))
		})
	}
}

// A run that is interrupted again before it has done any work keeps the checkpoint with which it
// resumed.
func TestInterruptBeforeWorkKeepsTheCheckpoint(t *testing.T) {
	testneed.Raced(t, "it interrupts and resumes runs for seconds")
	t.Parallel()
	ds := load(t, "planted?nodes=500&features=8&classes=3&seed=2")
	o := gnb.LaunchOptions{Data: ds, Threads: 1, Seed: 3}
	whole := pausedAt(t, phases, "", o)
	dir := filepath.Join(t.TempDir(), "run")
	o.RunDir, o.Quiet = dir, true
	for _, at := range []string{"iteration 1 3", "between network and optimiser"} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Events = func(e runs.Event) {
			if e.Kind == "log" {
				cancel()
			}
		}
		_ = os.Remove(filepath.Join(dir, "paused"))
		if _, err := gnb.Launch(ctx, phases, pauses{at}, o); !errors.Is(err, gnb.ErrInterrupted) {
			t.Fatalf("the run was not interrupted at %q: %v", at, err)
		}
		cancel()
		o.Resume, o.ResumeChanged = dir, true // the program's argument, the moment of the pause, changes
	}
	run, err := gnb.Launch(t.Context(), phases, pauses{}, o)
	if err != nil {
		t.Fatal(err)
	}
	sameRun(t, whole, run)
}

// A program without epochs resumes between its steps.
func TestStepsWithoutEpochsResume(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Parallel()
	ds := load(t, "planted?nodes=500&features=8&classes=3&seed=2")
	o := gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 3}
	whole := pausedAt(t, steady, "", o)
	resumed := pausedAt(t, steady, "step 7", o)
	sameRun(t, whole, resumed)
	if steps, err := resumed.Steps(); err != nil || len(steps) != 12 {
		t.Errorf("%d steps, %v; want 12", len(steps), err)
	}
}

// The same program resumes its interrupted run even if there were other runs since. After that run
// has ended, it starts a new one.
func TestInterruptedRunIsFoundAmongOthers(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, smallSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true, Seed: 1}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 150}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	train := func(ctx context.Context, o gnb.TrainOptions) (string, error) {
		run, err := gnb.Train(ctx, ds, gnb.SAGE, o)
		if run == nil {
			t.Fatal(err)
		}
		return run.Dir, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Events = func(e runs.Event) {
		if e.Kind == "epoch" {
			cancel()
		}
	}
	first, err := train(ctx, o)
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("error %v, want ErrInterrupted", err)
	}
	o.Events = nil
	other := o
	other.Epochs, other.Seed = 1, 2
	if _, err := train(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	again, err := train(t.Context(), o)
	if err != nil || again != first {
		t.Errorf("the interrupted run %s was not resumed, but %s (%v)", first, again, err)
	}
	if third, err := train(t.Context(), o); err != nil || third == first {
		t.Errorf("a run that had ended was resumed: %s (%v)", third, err)
	}
}

// A run goes on in its own directory. A program that asks for another one too learns that, and neither directory changes.
func TestResumedRunHasOneDirectory(t *testing.T) {
	t.Parallel()
	ds := load(t, smallSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true, Resume: gnb.Never, RunDir: filepath.Join(t.TempDir(), "run")}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}}
	first, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Epochs, o.Resume, o.ResumeChanged, o.RunDir = 2, first.Dir, true, filepath.Join(t.TempDir(), "other")
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err == nil || !strings.Contains(err.Error(), "goes on in its own directory") {
		t.Errorf("resuming %s in %s: %v", first.Dir, o.RunDir, err)
	}
	if _, err := os.Stat(o.RunDir); err == nil {
		t.Error("the other directory was made")
	}
	o.RunDir = first.Dir
	if again, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err != nil || again.Dir != first.Dir {
		t.Errorf("resuming with the run's own directory: %v", err)
	}
}
