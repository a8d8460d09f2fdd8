package gnb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// trainTold trains, interrupts the run after the given number of epochs of this start (0: never),
// and returns the run with the notes printed at its start.
func trainTold(t *testing.T, ds *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions, epochs int) (*runs.Run, string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []string
	o.Quiet = true
	o.Events = func(e runs.Event) {
		switch e.Kind {
		case "start":
			told = append(told, e.Text)
		case "epoch":
			if epochs--; epochs == 0 {
				cancel()
			}
		}
	}
	interrupt := epochs > 0
	run, err := gnb.Train(ctx, ds, model, o)
	if interrupt && !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	return run, strings.Join(told, "\n"), err
}

// newestCheckpoint returns a run's last checkpoint and its step.
func newestCheckpoint(t *testing.T, run *runs.Run) (string, int64) {
	t.Helper()
	path, step, _, err := checkpoint.Latest(filepath.Join(run.Dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	return path, step
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run skips, with a note, a checkpoint that was copied from a run with another seed, learning
// rate or data. A run without any other checkpoint is not resumed.
func TestForeignCheckpointsArePassedOver(t *testing.T) {
	testneed.NotShort(t, "it trains a dozen runs")
	ds := load(t, smallSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 1, CheckpointEvery: 1, KeepCheckpoints: 100}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2000}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	begin := func(t *testing.T, o gnb.TrainOptions, epochs int) *runs.Run {
		t.Setenv("GNB_RUNS", t.TempDir())
		run, _, _ := trainTold(t, ds, gnb.SAGE, o, epochs)
		return run
	}
	for name, c := range map[string]struct {
		change func(o *gnb.TrainOptions)
		want   string
	}{
		"seed":          {func(o *gnb.TrainOptions) { o.Seed = 2 }, "it is not this run's, but of run "},
		"learning rate": {func(o *gnb.TrainOptions) { o.LR = 0.5 }, "it is not this run's, but of run "},
		"nothing":       {func(*gnb.TrainOptions) {}, "it is not this run's, but of run "},
	} {
		t.Run(name, func(t *testing.T) {
			p := o
			c.change(&p)
			run := begin(t, o, 2)
			_, own := newestCheckpoint(t, run)
			foreign, step := "", int64(0)
			for epochs := 9; step <= own && epochs < 2000; epochs *= 3 { // a run ends some time after its interrupt
				foreign, step = newestCheckpoint(t, begin(t, p, epochs))
			}
			if own >= step {
				t.Fatalf("the copied checkpoint has step %d, which is not after step %d", step, own)
			}
			t.Setenv("GNB_RUNS", filepath.Dir(run.Dir))
			copyFile(t, foreign, checkpoint.Path(filepath.Join(run.Dir, "checkpoints"), step))
			again, said, _ := trainTold(t, ds, gnb.SAGE, o, 1)
			if again.Dir != run.Dir || !strings.Contains(said, "passing over a checkpoint: ") || !strings.Contains(said, c.want) {
				t.Errorf("training continued in %s and printed %q", again.Dir, said)
			}
			if want := fmt.Sprintf("from its checkpoint after step %d", own); !strings.HasSuffix(said, want) {
				t.Errorf("training printed %q, want %q", said, want)
			}
		})
		t.Run(name+", alone", func(t *testing.T) {
			p := o
			c.change(&p)
			foreign, step := newestCheckpoint(t, begin(t, p, 2))
			run := begin(t, o, 1)
			dir := filepath.Join(run.Dir, "checkpoints")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			copyFile(t, foreign, checkpoint.Path(dir, step))
			p = o
			p.Resume = run.Dir
			before, err := os.ReadFile(filepath.Join(run.Dir, "metrics.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = gnb.Train(t.Context(), ds, gnb.SAGE, p)
			readable(t, err, `it has no checkpoint of its own .*not this run's, but of run`)
			if after, err := os.ReadFile(filepath.Join(run.Dir, "metrics.jsonl")); err != nil || !bytes.Equal(before, after) {
				t.Errorf("refusing the checkpoint changed the run's metrics (%v)", err)
			}
		})
	}
	// The checkpoint is from the same run, written after a change that is then undone.
	t.Run("another identity", func(t *testing.T) {
		run := begin(t, o, 2)
		config := filepath.Join(run.Dir, "config.json")
		copyFile(t, config, config+".before")
		_, own := newestCheckpoint(t, run)
		p := o
		p.LR, p.Resume, p.ResumeChanged = 0.5, run.Dir, true
		_, _, _ = trainTold(t, ds, gnb.SAGE, p, 2)
		copyFile(t, config+".before", config)
		p.LR, p.ResumeChanged = 0, false
		again, said, _ := trainTold(t, ds, gnb.SAGE, p, 1)
		if !strings.Contains(said, "it is not this run's: it was made with other data, code or settings") {
			t.Errorf("it said %q", said)
		}
		if steps, err := again.Steps(); err != nil || steps[own].LR != 0.01 {
			t.Errorf("after step %d the learning rate is %v (%v)", own, steps[own].LR, err)
		}
	})
}

// A run without an identity, as earlier versions wrote, resumes only if it is named. It then
// resumes to the same bits, with a note, and gets an identity.
func TestRunWithoutIdentity(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, smallSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 1, CheckpointEvery: 1}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 60}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	whole, _, err := trainTold(t, ds, gnb.SAGE, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNB_RUNS", t.TempDir())
	run, _, _ := trainTold(t, ds, gnb.SAGE, o, 2)
	forget(t, run)
	other, said, err := trainTold(t, ds, gnb.SAGE, o, 0)
	if err != nil || other.Dir == run.Dir || !strings.Contains(said, "it is of a version that did not record its data and code; a new run begins") {
		t.Errorf("without the run's name: %v, in %s, printing %q", err, other.Dir, said)
	}
	if err := os.RemoveAll(other.Dir); err != nil {
		t.Fatal(err)
	}
	p := o
	p.Resume, p.Seed = run.Dir, 2
	_, _, err = trainTold(t, ds, gnb.SAGE, p, 0)
	readable(t, err, `the seed was 1 and is 2`)
	p.Seed = 1
	_, _, err = trainTold(t, load(t, "planted?nodes=500"), gnb.SAGE, p, 0)
	readable(t, err, `it had \d+ nodes, \d+ edges and split set 0 and has 500`)
	again, said, _ := trainTold(t, ds, gnb.SAGE, p, 1)
	if !strings.Contains(said, "which data and code the run had was not recorded") || again.Config.Identity == nil || len(again.Config.Changes) != 1 {
		t.Errorf("with the run's name: %+v, printing %q", again.Config, said)
	}
	p.Resume = ""
	again, said, err = trainTold(t, ds, gnb.SAGE, p, 0)
	if err != nil || again.Dir != run.Dir || !strings.Contains(said, "resuming run") {
		t.Fatalf("with an identity: %v, in %s, printing %q", err, again.Dir, said)
	}
	sameRun(t, whole, again)
}

// A change of the library's version is reported and does not block resuming.
func TestAnotherLibraryIsSaid(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, smallSet)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, CheckpointEvery: 1}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 4000}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	run, _, _ := trainTold(t, ds, gnb.SAGE, o, 2)
	editJSON(t, filepath.Join(run.Dir, "config.json"), func(config map[string]any) {
		config["identity"].(map[string]any)["library"] = "0.0.7"
	})
	again, said, _ := trainTold(t, ds, gnb.SAGE, o, 1)
	if again.Dir != run.Dir || !strings.Contains(said, "it was begun with GraphNB 0.0.7 and is resumed with ") || len(again.Config.Changes) > 0 {
		t.Errorf("training continued in %s, with changes %v, and printed %q", again.Dir, again.Config.Changes, said)
	}
}

// editJSON edits a file of a run as a user would, which removes its checksum.
func editJSON(t *testing.T, path string, edit func(m map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "gnb_sealed")
	delete(m, "gnb_sha256")
	edit(m)
	if raw, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// forget removes from a run the records that versions without identities did not write.
func forget(t *testing.T, run *runs.Run) {
	t.Helper()
	editJSON(t, filepath.Join(run.Dir, "config.json"), func(config map[string]any) {
		delete(config, "identity")
		delete(config, "dataset_source")
	})
	dir := filepath.Join(run.Dir, "checkpoints")
	path, step := newestCheckpoint(t, run)
	var state map[string]any
	tensors, err := checkpoint.Load(path, &state)
	if err != nil {
		t.Fatal(err)
	}
	delete(state, "run")
	delete(state, "identity")
	for _, o := range state["optimizers"].([]any) {
		delete(o.(map[string]any), "start_lr")
	}
	if _, err := checkpoint.Save(dir, step, tensors, state, 1); err != nil {
		t.Fatal(err)
	}
}

// If a run's directory holds a run with other settings, it is refused with the difference; with the
// same settings the run resumes.
func TestRunDirOfAnotherRun(t *testing.T) {
	ds := load(t, smallSet)
	dir := filepath.Join(t.TempDir(), "run")
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, CheckpointEvery: 1, RunDir: dir}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 4000}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	_, _, _ = trainTold(t, ds, gnb.SAGE, o, 2)
	p := o
	p.LR, p.Hidden = 0.5, 16
	_, _, err := trainTold(t, ds, gnb.SAGE, p, 0)
	readable(t, err, `already holds a run, of other things: Hidden was 64 and is 16; LR was 0.01 and is 0.5; resume it all the same`)
	_, said, _ := trainTold(t, ds, gnb.SAGE, o, 1)
	if !strings.HasPrefix(said, "resuming run ") {
		t.Errorf("it said %q", said)
	}
}

// Labels are random, so a network can only learn them by heart. The dataset's directory is
// rewritten with another split; a resumed run would validate on nodes that it has trained on.
func TestDirectoryWrittenAnew(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	dir := filepath.Join(t.TempDir(), "data")
	write := func(seed uint64) *gnb.Dataset {
		ds := load(t, "planted?nodes=600&features=32&classes=5&seed=2")
		r := rand.New(rand.NewPCG(1, 1))
		for i := range ds.Labels {
			ds.Labels[i] = int32(r.IntN(5))
		}
		ids := rand.New(rand.NewPCG(seed, 1)).Perm(600)
		for i, name := range []string{"train", "val", "test"} {
			ds.Splits[name] = nil
			for _, id := range ids[i*200 : i*200+200] {
				ds.Splits[name] = append(ds.Splits[name], int32(id))
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := dataset.Write(dir, ds); err != nil {
			t.Fatal(err)
		}
		ds, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ds.Close() })
		return ds
	}
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, CheckpointEvery: 10}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 200}, ModelOptions: gnb.ModelOptions{Hidden: 64}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{-1, -1}}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 200}}
	first, _, _ := trainTold(t, write(1), gnb.SAGE, o, 50)
	second, said, err := trainTold(t, write(2), gnb.SAGE, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if second.Dir == first.Dir || !strings.Contains(said, "the data changed (other splits); a new run begins") {
		t.Errorf("training continued in %s, printing %q", second.Dir, said)
	}
	if acc := second.TestAccuracy(); acc > 0.4 {
		t.Errorf("the test accuracy is %v for random labels of 5 classes", acc)
	}
}

// scheduled halves its learning rate once, through SetLR.
var scheduled = gnb.Program("test.scheduled", func(w *gnb.Worker, lr float64) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, lr)
	for epoch := range w.Epochs(6) {
		if epoch == 2 {
			opt.SetLR(lr / 2)
		}
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3}, MaxSteps: 2}) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
		}
	}
	return nil
})

// A run that resumes with another learning rate uses the new rate from there on, multiplied by the
// factor that the program has reached. It never records the new rate while training with the old
// one.
func TestChangedLearningRateHolds(t *testing.T) {
	ds := load(t, smallSet)
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := gnb.LaunchOptions{
		Data:            ds,
		Workers:         2,
		Threads:         1,
		RunDir:          dir,
		Quiet:           true,
		CheckpointEvery: 1,
		Events: func(e runs.Event) {
			if e.Kind == "epoch" && e.Epoch == 3 {
				cancel()
			}
		},
	}
	if _, err := gnb.Launch(ctx, scheduled, 0.02, o); !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatal(err)
	}
	o.Events, o.RunDir, o.Resume = nil, "", dir
	_, err := gnb.Launch(t.Context(), scheduled, 0.002, o)
	readable(t, err, `the argument was 0.02 and is 0.002; to resume it all the same set ResumeChanged`)
	o.ResumeChanged = true
	run, err := gnb.Launch(t.Context(), scheduled, 0.002, o)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := run.Steps()
	if err != nil || len(steps) != 12 || len(run.Config.Changes) != 1 {
		t.Fatalf("%d steps (%v), changes %v", len(steps), err, run.Config.Changes)
	}
	at := run.Config.Changes[0].Step
	for _, s := range steps {
		want := 0.02
		if s.Total > at {
			want = 0.002
		}
		if s.Epoch >= 2 {
			want /= 2
		}
		if d := s.LR/want - 1; d > 1e-12 || d < -1e-12 {
			t.Errorf("step %d of epoch %d has learning rate %v, want %v", s.Total, s.Epoch, s.LR, want)
		}
	}
	if got := run.String(); !strings.Contains(got, "changed after step") || !strings.Contains(got, "the argument was 0.02 and is 0.002") {
		t.Errorf("the run is printed as\n%s", got)
	}
	_, err = gnb.Launch(t.Context(), scheduled, 0.002, gnb.LaunchOptions{Data: ds, ResumeChanged: true})
	readable(t, err, `ResumeChanged needs Resume`)
}

// A sweep is not resumed with other data or with a changed model, because its trials could not be
// compared.
func TestSweepIdentity(t *testing.T) {
	testneed.NotShort(t, "it runs several sweeps")
	t.Setenv("GNB_RUNS", t.TempDir())
	search := func(spec string, o sweep.Options, stop bool) (*sweep.Study, error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Method, o.Trials, o.Seed, o.Quiet = "random", 4, 1, true
		if stop {
			o.Events = func(r sweep.TrialResult) {
				if r.Number == 1 && r.State == runs.StateRunning {
					cancel()
				}
			}
		}
		return sweep.Run(ctx, load(t, spec), identityNet, func(t *sweep.Trial) gnb.TrainOptions {
			return gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: t.LogFloat("lr", 0.01, 0.1), Epochs: 40}, LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, CheckpointEvery: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 40}}
		}, o)
	}
	const base, other = "planted?nodes=400&features=8&classes=3&seed=2", "planted?nodes=400&features=8&classes=3&seed=2&noise=8"
	first, err := search(base, sweep.Options{}, true)
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatal(err)
	}
	if first.Identity == nil || first.Identity.Code.By != "source" || first.Identity.Data == nil {
		t.Fatalf("the sweep's identity is %+v", first.Identity)
	}
	second, err := search(other, sweep.Options{}, true)
	if !errors.Is(err, gnb.ErrInterrupted) || second.Dir == first.Dir {
		t.Errorf("with other data, the sweep continued in %s (%v)", second.Dir, err)
	}
	for _, o := range []sweep.Options{{Dir: first.Dir}, {Resume: first.Dir}} {
		_, err = search(other, o, false)
		readable(t, err, `is a sweep of other things: the data changed \(other features\); its trials and new ones could not be compared`)
	}
	// The code has changed if the recorded digest differs.
	part := "function `(*identityNetwork).Layer`"
	if first.Identity.Code.Parts[part] == "" {
		t.Fatalf("%s is not among %v", part, first.Identity.Code.Parts)
	}
	editJSON(t, filepath.Join(first.Dir, "sweep.json"), func(study map[string]any) {
		study["identity"].(map[string]any)["code"].(map[string]any)["parts"].(map[string]any)[part] = "00"
	})
	_, err = search(base, sweep.Options{Dir: first.Dir}, false)
	readable(t, err, "function `\\(\\*identityNetwork\\).Layer` changed; its trials")
	again, err := search(base, sweep.Options{Dir: first.Dir, ResumeChanged: true}, false)
	if err != nil || len(again.Trials) != 4 || len(again.Changes) != 1 || again.Changes[0].What[0] != part+" changed" || again.Changes[0].Step != int64(len(first.Trials)) {
		t.Fatalf("continuing despite the change gave %v, changes %+v", err, again.Changes)
	}
	for _, r := range again.Trials {
		if r.State != runs.StateDone {
			t.Errorf("trial %d is %s: %s", r.Number, r.State, r.Error)
		}
	}
	if again, err = sweep.Open(first.Dir); err != nil || len(again.Changes) != 1 {
		t.Errorf("sweep.json keeps changes %+v (%v)", again.Changes, err)
	}
}

// identityNetwork is the model of these tests.
type identityNetwork struct{ Convs []*nn.SAGEConv }

func (n *identityNetwork) NumLayers() int { return len(n.Convs) }

func (n *identityNetwork) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return n.Convs[i].Forward(f, b, h)
}

var identityNet = gnb.Model("identity.net", func(s gnb.ModelConfig) *identityNetwork { return &identityNetwork{nn.Stack(s, nn.NewSAGE)} })
