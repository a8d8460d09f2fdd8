package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
)

// interruptedTraining starts "gnb train" with args, interrupts it after some epochs and returns the
// run's directory.
func interruptedTraining(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, append(args, "--json")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	epochs := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), `"event":"epoch"`) {
			if epochs++; epochs == 3 {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the run ended before it was interrupted")
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*", "config.json"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("no runs: %v", err)
	}
	return filepath.Dir(runs[len(runs)-1])
}

// copied copies a run's directory under the same name into a new directory of runs.
func copied(t *testing.T, run string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	to := filepath.Join(dir, "runs", filepath.Base(run))
	if err := os.CopyFS(to, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func configOf(t *testing.T, dir string) (c runs.Config) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// "gnb train --resume RUN" uses the run's own data and flags. A flag with another value is refused
// or, with --resume-changed, applies from there on and is recorded: the run never trains with one
// value and records another.
func TestTrainResume(t *testing.T) {
	first := interruptedTraining(t, t.TempDir(), "train", "planted?nodes=600&features=8&classes=3&noise=2",
		"--epochs", "4000", "--hidden", "24", "--fanout", "4,full", "--lr", "0.02", "--seed", "4", "--dropout", "0", "--batch", "200", "--eval", "none", "--patience", "0")
	before := configOf(t, first)
	name := filepath.Base(first)
	for _, c := range []struct {
		name    string
		args    []string
		refused string
		changes string
	}{
		{"learning rate", []string{"--lr", "0.0001"}, "LR was 0.02 and is 0.0001", ""},
		{"epochs", []string{"--epochs", "5"}, "Epochs was 4000 and is 5", ""},
		{"fanout", []string{"--fanout", "3,3"}, "Fanouts was [4,-1] and is [3,3]", ""},
		{"sampler", []string{"--sampler", "labor", "--batch-dependency", "4"}, "BatchDependency was none and is 4; Sampler was none and is labor", ""},
		{"layers", []string{"--layers", "3"}, "Layers was 2 and is 3", ""},
		{"batch", []string{"--batch-per-worker", "100"}, "Batch was 200 and is none; BatchPerWorker was none and is 100", ""},
		{"seed", []string{"--seed", "5"}, "the seed was 4 and is 5", ""},
		{"model", []string{"--model", "gcn"}, "Model was sage and is gcn", ""},
		{"precision", []string{"--precision", "bf16"}, "the precision was float32 and is bf16", ""},
		{"data", []string{"planted?nodes=600&features=8&classes=3&noise=3"}, "the data changed (other features)", ""},
		{"data of another name", []string{"karate"}, "the data was planted and is karate (other structure, features, labels and splits)", ""},
		{"learning rate and epochs, changed", []string{"--lr", "0.0001", "--epochs", "30", "--resume-changed"}, "", "Epochs was 4000 and is 30; LR was 0.02 and is 0.0001"},
		{"data, changed", []string{"planted?nodes=600&features=8&classes=3&noise=3", "--epochs", "30", "--resume-changed"}, "", "the data changed (other features); Epochs was 4000 and is 30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, first)
			run := filepath.Join(dir, "runs", name)
			status, _, stderr := gnbRun(t, dir, append([]string{"train", "--resume", name}, c.args...)...)
			now := configOf(t, run)
			if c.refused != "" {
				if status != 1 || !strings.Contains(stderr, c.refused) || !strings.Contains(stderr, "--resume-changed") {
					t.Errorf("status %d, %q; want it refused with %q", status, stderr, c.refused)
				}
				if a, b := text(t, before), text(t, now); a != b {
					t.Errorf("the refused command changed config.json:\n%s\n%s", a, b)
				}
				return
			}
			if status != 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			if len(now.Changes) != 1 || strings.Join(now.Changes[0].What, "; ") != c.changes || now.Changes[0].Step == 0 || time.Since(now.Changes[0].When) > time.Hour {
				t.Errorf("the recorded changes are %+v, want %q", now.Changes, c.changes)
			}
			r, err := runs.Open(run)
			if err != nil {
				t.Fatal(err)
			}
			_, o, err := gnb.OptionsOf(r)
			steps, err2 := r.Steps()
			if err != nil || err2 != nil || len(steps) == 0 {
				t.Fatalf("%v, %v, %d steps", err, err2, len(steps))
			}
			for _, s := range steps {
				want := o.LR
				if s.Total <= now.Changes[0].Step {
					want = 0.02
				}
				if s.LR != want {
					t.Fatalf("step %d used the learning rate %v, but config.json records %v from step %d on", s.Total, s.LR, o.LR, now.Changes[0].Step)
				}
			}
			if _, out, _ := gnbRun(t, dir, "runs", "show", name); !strings.Contains(out, "changed after step") || !strings.Contains(out, c.changes) {
				t.Errorf("runs show does not show the change:\n%s", out)
			}
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		dir := copied(t, first)
		interruptedTraining(t, dir, "train", "--resume", name)
		now := configOf(t, filepath.Join(dir, "runs", name))
		now.Threads = before.Threads
		if a, b := text(t, before), text(t, now); a != b {
			t.Errorf("resuming with --resume alone changed the settings:\n%s\n%s", a, b)
		}
	})
	t.Run("words", func(t *testing.T) {
		t.Parallel()
		for want, args := range map[string][]string{
			"the DATASET is missing":   {"train"},
			"--resume-changed needs":   {"train", "karate", "--resume-changed"},
			"is not a run's directory": {"train", "--resume", "nothing"},
			"--resume-changed needs ":  {"train", "karate", "--resume", "never", "--resume-changed"},
		} {
			if status, _, stderr := gnbRun(t, t.TempDir(), args...); status == 0 || !strings.Contains(stderr, want) {
				t.Errorf("gnb %s: status %d, %q; want %q", strings.Join(args, " "), status, stderr, want)
			}
		}
	})
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
