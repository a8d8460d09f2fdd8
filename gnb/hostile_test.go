package gnb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// interruptedRun returns a run of gnb.Train that was interrupted after its best epoch; runs are
// below GNB_RUNS.
func interruptedRun(t *testing.T) (dir string, again func() (*runs.Run, error)) {
	t.Helper()
	found := filepath.Join(t.TempDir(), "runs")
	t.Setenv("GNB_RUNS", found)
	ds := load(t, smallSet)
	dir = filepath.Join(found, "first")
	options := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true, CheckpointEvery: 3, Seed: 3}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 6}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options
	o.RunDir = dir
	o.Events = func(e runs.Event) {
		if e.Kind == "epoch" && e.Epoch == 3 {
			cancel()
		}
	}
	if _, err := gnb.Train(ctx, ds, gnb.SAGE, o); !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	return dir, func() (*runs.Run, error) {
		o := options
		o.Resume = dir
		return gnb.Train(t.Context(), ds, gnb.SAGE, o)
	}
}

// Listing, opening, resuming and inference all end, with or without an error, even if one of a
// run's files is a pipe, a device or a directory. They never read from such a file.
func TestNoFileOfARunHangs(t *testing.T) {
	testneed.NotShort(t, "it trains a run for each of its files")
	dir, again := interruptedRun(t)
	whole := filepath.Join(t.TempDir(), "whole")
	copyTree(t, dir, whole)
	newest, _, _, err := checkpoint.Latest(filepath.Join(dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	ds := load(t, smallSet)
	for i, name := range []string{"config.json", "result.json", "metrics.jsonl", "best.safetensors", filepath.Join("checkpoints", filepath.Base(newest)), "figure.png", "model.safetensors", "checkpoints"} {
		for _, kind := range specials(i) {
			if name == "checkpoints" && kind == "directory" {
				continue // it is a directory anyway
			}
			t.Run(name+" is a "+kind, func(t *testing.T) {
				copyTree(t, whole, dir)
				plant(t, filepath.Join(dir, name), kind)
				within(t, "listing runs", func() {
					if _, err := runs.List(t.Context(), runs.Options{Damaged: true, Trials: true}); err != nil {
						t.Error(err)
					}
				})
				var run *runs.Run
				within(t, "opening the run", func() {
					if run, err = runs.Open(dir); err != nil && !strings.Contains(err.Error(), name) {
						t.Errorf("the error of opening the run does not name %s: %v", name, err)
					}
				})
				if slices.Contains([]string{"config.json", "result.json"}, name) && err == nil {
					t.Error("opening the run gave no error")
				}
				if run != nil {
					within(t, "reading its steps", func() {
						if _, err := run.Steps(); name == "metrics.jsonl" && (err == nil || !strings.Contains(err.Error(), name)) {
							t.Errorf("with metrics that are a %s: %v", kind, err)
						}
					})
					within(t, "computing with the run", func() {
						_, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "x.npy"), gnb.InferOptions{Workers: 1, Quiet: true})
						if name == "best.safetensors" && (err == nil || !strings.Contains(err.Error(), name)) {
							t.Errorf("with best weights that are a %s: %v", kind, err)
						}
					})
				}
				within(t, "looking for a run to resume", func() {
					other, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true, Seed: 99}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
					if err != nil {
						t.Error(err)
						return
					}
					_ = os.RemoveAll(other.Dir)
				})
				within(t, "resuming the run", func() {
					_, err := again()
					switch {
					case name == "result.json" || strings.HasPrefix(name, "checkpoints"+string(filepath.Separator)):
						if err != nil && kind != "directory" { // the file is written again or skipped
							t.Errorf("resuming the run failed: %v", err)
						}
					case err == nil && !slices.Contains([]string{"figure.png", "model.safetensors", "checkpoints"}, name):
						t.Error("the run was resumed")
					}
				})
			})
		}
	}
}

// contents returns what readers of a run find in its directory, including their errors.
func contents(dir string) (out []string, noticed bool) {
	r, err := runs.Open(dir)
	if err != nil {
		return nil, true
	}
	s, err := r.Steps()
	b, bad := json.Marshal(r)
	return []string{string(b), fmt.Sprintf("%v %+v", bad, s)}, err != nil
}

// In every file of a run that is read back, a flipped bit is detected or has no effect.
func TestFlippedBitsOfARunAreNoticed(t *testing.T) {
	testneed.NotShort(t, "it opens a run with each of its bits flipped")
	dir, _ := interruptedRun(t)
	clean, noticed := contents(dir)
	if noticed {
		t.Fatal("the run is damaged before anything was done to it")
	}
	for _, name := range []string{"config.json", "result.json", "metrics.jsonl"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		silent, seen := 0, 0
		for _, bit := range flips(int64(len(whole))) {
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			now, noticed := contents(dir)
			switch {
			case noticed:
				seen++
			case !slices.Equal(now, clean):
				t.Errorf("%s: bit %d of byte %d changes the contents without an error", name, bit%8, bit/8)
			default:
				silent++
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, %d bytes: %d flips detected, %d without effect", name, len(whole), seen, silent)
		if seen == 0 || name != "metrics.jsonl" && silent > 0 {
			t.Errorf("%s: %d flips were detected and %d were not", name, seen, silent)
		}
	}
}

// Inference and resuming refuse weights with a flipped bit and those of another run. Missing
// weights are reported.
func TestWeightsThatAreNotTheRunsAreRefused(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	dir, again := interruptedRun(t)
	ds := load(t, smallSet)
	best := filepath.Join(dir, "best.safetensors")
	whole, err := os.ReadFile(best)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x.npy")
	infer := func(final bool) error {
		r, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = gnb.Infer(t.Context(), r, ds, out, gnb.InferOptions{Workers: 1, Quiet: true, Final: final})
		return err
	}
	if err := infer(false); err != nil {
		t.Fatalf("using the weights of an interrupted run gave %v", err)
	}
	for i, bit := range flips(int64(len(whole))) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(best, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := safetensors.ReadFile(best); err == nil {
			t.Errorf("the flip of bit %d of byte %d was not detected", bit%8, bit/8)
		}
		if i%512 < 16 { // each of these starts a process
			if err := infer(false); err == nil || !strings.Contains(err.Error(), best) {
				t.Errorf("bit %d of byte %d: %v", bit%8, bit/8, err)
			}
		}
	}
	if _, err := again(); err == nil || !strings.Contains(err.Error(), best) {
		t.Errorf("resuming with damaged weights gave %v", err)
	}
	if err := os.Remove(best); err != nil {
		t.Fatal(err)
	}
	if err := infer(false); err == nil || !strings.Contains(err.Error(), "best.safetensors of run") {
		t.Errorf("inference without the best weights gave %v", err)
	}
	other, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true, Seed: 4}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(other.BestWeights())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(best, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := infer(false); err == nil || !strings.Contains(err.Error(), "is not the file that run") {
		t.Errorf("inference with another run's weights gave %v", err)
	}
	if _, err := again(); err == nil || !strings.Contains(err.Error(), "is not the file that the run wrote") {
		t.Errorf("resuming with another run's weights gave %v", err)
	}
	if err := os.WriteFile(best, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := again()
	if err != nil || r.Result.State != runs.StateDone {
		t.Fatalf("with the run's own weights restored: %v, %v", r, err)
	}
	if err := infer(true); err != nil {
		t.Error(err)
	}
	if err := os.Remove(best); err != nil {
		t.Fatal(err)
	}
	if err := infer(false); err == nil || !strings.Contains(err.Error(), "--final") {
		t.Errorf("a completed run without its best weights gave %v", err)
	}
	if err := infer(true); err != nil {
		t.Error(err)
	}
}

// Damaged metrics or a damaged result do not block resuming: the run writes the result again and
// skips damaged lines of the metrics.
func TestDamageThatDoesNotMatterDoesNotBlock(t *testing.T) {
	dir, again := interruptedRun(t)
	if err := os.WriteFile(filepath.Join(dir, "result.json"), []byte(`{"state":`), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "metrics.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[10] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := again()
	if err != nil || r.Result.State != runs.StateDone || r.Result.Epochs != 6 {
		t.Fatalf("%v, %v", r, err)
	}
	if _, err := r.Steps(); err != nil {
		t.Errorf("the damaged line remains: %v", err)
	}
}

// A killed run is listed as killed everywhere, and its best weights can be used.
func TestKilledRunIsCalledKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "run")
	c := startCell(t, "train", cellOptions{Dir: dir, Workers: 1, Threads: 1, Epochs: 100000, Every: 5})
	deadline := time.Now().Add(60 * time.Second)
	for {
		if _, _, _, err := checkpoint.Latest(filepath.Join(dir, "checkpoints")); err == nil {
			if _, err := os.Stat(filepath.Join(dir, "best.safetensors")); err == nil {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no checkpoint in a minute; the cell printed:\n%s", c.out.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	r, err := runs.Open(dir)
	if err != nil || r.Result.State != runs.StateRunning {
		t.Errorf("while the run goes on: %v, %v", r, err)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.wait(10 * time.Second)
	c.gone(5 * time.Second)
	if r, err = runs.Open(dir); err != nil || r.Result.State != runs.StateKilled || !strings.Contains(r.String(), "killed") {
		t.Fatalf("%v, %v", r, err)
	}
	found, err := runs.List(t.Context(), runs.Options{Dir: filepath.Dir(dir), Filter: "state=killed"})
	if err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	out := filepath.Join(t.TempDir(), "x.npy")
	res, err := gnb.Infer(t.Context(), r, load(t, smallSet), out, gnb.InferOptions{Workers: 1, Quiet: true})
	if err != nil || filepath.Base(res.Weights) != "best.safetensors" {
		t.Errorf("inference with the killed run gave %v, %v", res, err)
	}
}

// Infer writes into a pipe or device and keeps it.
func TestInferWritesIntoPipesAndDevices(t *testing.T) {
	testneed.NotShort(t, "it trains and infers for seconds")
	ds := load(t, smallSet)
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run")}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	infer := func(out string) error {
		_, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Workers: 1, Quiet: true})
		return err
	}
	dir := t.TempDir()
	plain, pipe, null, full := filepath.Join(dir, "plain"), filepath.Join(dir, "pipe"), filepath.Join(dir, "null"), filepath.Join(dir, "full")
	if err := infer(plain); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		b, _ := os.ReadFile(pipe)
		got <- b
	}()
	if err := infer(pipe); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(<-got, want) {
		t.Error("the bytes from the pipe differ from those in a file")
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("after Infer the pipe is %v, %v", info, err)
	}
	// The test makes its own devices, because a mistake would replace those in /dev for the whole
	// machine.
	if err := errors.Join(syscall.Mknod(null, syscall.S_IFCHR|0o666, 1<<8|3), syscall.Mknod(full, syscall.S_IFCHR|0o666, 1<<8|7)); err != nil {
		t.Logf("no devices can be made here: %v; internal/atomicfile tries a terminal", err)
		return
	}
	if f, err := os.OpenFile(null, os.O_WRONLY, 0); err != nil {
		t.Logf("no devices can be used here: %v", err)
		return
	} else {
		_ = f.Close()
	}
	if err := infer(null); err != nil {
		t.Error(err)
	}
	if err := infer(full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing into a full device gave %v", err)
	}
	for _, path := range []string{null, full} {
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("after Infer the device is %v, %v", info, err)
		}
	}
	// No process reads this pipe, so Infer waits until it is interrupted.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gnb.Infer(ctx, run, ds, pipe, gnb.InferOptions{Workers: 1, Quiet: true}); err == nil {
		t.Error("writing to a pipe without a reader gave no error")
	}
	if f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // opening the pipe releases the blocked writer
		_ = f.Close()
	}
}
