package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A disk that damages a file of features without changing its times is noticed while a run trains on it: the run ends with the
// sentence and a status, and nothing that it leaves is called finished.
func TestBackgroundVerificationEndsARun(t *testing.T) {
	testneed.NotShort(t, "it writes 280 MB of features")
	dir := t.TempDir()
	ds, err := datasets.LoadWith(t.Context(), "planted?nodes=10000&features=7000&degree=4", datasets.LoadOptions{ToWrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write(filepath.Join(dir, "d"), ds); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "d", "features.npy")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var last [4]byte // of a number near 0, whose lowest bit no check of values sees
	_, err = f.ReadAt(last[:], info.Size()-4)
	last[0] ^= 1
	_, e := f.WriteAt(last[:], info.Size()-4)
	if err := errors.Join(err, e, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command(t), "train", "d", "--epochs", "1000000", "--workers", "1", "--threads", "1", "--fanout", "2", "--hidden", "4", "--batch", "1000", "--run", "runs/r")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"), "GNB_HOME="+filepath.Join(dir, "home"))
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("the run did not end: %s", stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if said := lines[len(lines)-1]; err == nil || !strings.Contains(said, path+" is not what was written") || strings.Contains(stderr.String(), "goroutine ") {
		t.Errorf("the run ended with %v: %s", err, stderr.String())
	}
	metrics, err := os.ReadFile(filepath.Join(dir, "runs", "r", "metrics.jsonl"))
	if err != nil || !strings.Contains(string(metrics), `"epoch"`) {
		t.Errorf("the run ended before it trained: %s (%v)", metrics, err)
	}
	var result struct {
		State string `json:"state"`
		Error string `json:"error"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "runs", "r", "result.json"))
	if err := errors.Join(err, json.Unmarshal(text, &result)); err != nil || result.State == runs.StateDone || !strings.Contains(result.Error, "is not what was written") {
		t.Errorf("the result is %s (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", "r", "model.safetensors")); err == nil {
		t.Error("the run has final weights")
	}
}
