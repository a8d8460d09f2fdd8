package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSweepCommand(t *testing.T) {
	dir := t.TempDir()
	args := []string{
		"sweep", "planted?nodes=600&features=8", "--param", "lr=log:1e-4:1e-1", "--param", "hidden=4,8", "--param", "heads=1:2", "--param", "fanout=4,4|6,3", "--param", "dropout=0:0.5",
		"--method", "random", "--parallel", "2", "--epochs", "2", "--seed", "5", "--workers", "1", "--dir", "s",
	}
	events, r := result(t, dir, append(args, "--trials", "3", "--png", "s.png")...)
	has(t, r, "state", "dataset", "model", "method", "metric", "seed", "parallel", "trials", "dir", "best", "importance")
	begun, done := 0, 0
	for _, e := range events {
		if e["event"] != "trial" {
			continue
		}
		has(t, e, "trial", "state", "values", "run")
		switch e["state"] {
		case "running":
			begun++
		case "done":
			done++
			has(t, e, "value", "seconds")
		}
	}
	trials := r["trials"].([]any)
	if begun != 3 || done != 3 || len(trials) != 3 {
		t.Fatalf("%d trials began, %d ended, and the result has %d", begun, done, len(trials))
	}
	first, _ := json.Marshal(trials[0].(map[string]any)["options"])
	for _, want := range []string{`"Epochs":2`, `"Seed":5`, `"Fanouts":[`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s is missing in the options %s", want, first)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "s.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
	// A sweep can be extended, and its output ends with the command that trains the best trial
	// again.
	status, stdout, stderr := gnbRun(t, dir, append(args, "--trials", "4")...)
	if status != 0 || !strings.Contains(stdout, "4 trials") || !strings.Contains(stderr, "continuing after 3 trials") {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	_, line, ok := strings.Cut(strings.TrimSpace(stdout), "to train the best trial again: gnb ")
	if !ok || !strings.HasPrefix(line, "train 'planted?nodes=600&features=8' --epochs=2 --seed=5 --workers=1 --lr=") {
		t.Fatalf("the last line is %q", line)
	}
	_, again := result(t, dir, strings.Fields(strings.ReplaceAll(line, "'", ""))...)
	_, r = result(t, dir, append(args, "--trials", "4")...)
	if best := r["best"].(map[string]any); best["value"] != again["val_accuracy"] {
		t.Errorf("the best trial's accuracy was %v, and trained again it is %v", best["value"], again["val_accuracy"])
	}
	// The sweep is also found in the directory of runs.
	if err := os.Rename(filepath.Join(dir, "s"), filepath.Join(dir, "runs", "s")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"runs", "list"}, {"runs", "show", "s"}} {
		status, stdout, stderr := gnbRun(t, dir, args...)
		if status != 0 || !strings.Contains(stdout, "random search of sage on planted: done, 4 trials") {
			t.Errorf("%v: exit status %d\n%s%s", args, status, stdout, stderr)
		}
	}
	_, r = result(t, dir, "runs", "compare", "s")
	if n := len(r["runs"].([]any)); n != 4 {
		t.Errorf("%d trials compared, want 4", n)
	}
	result(t, dir, "runs", "export", "s", "--tensorboard", "tb")
	if found, err := filepath.Glob(filepath.Join(dir, "tb", "s", "trial-*", "events.*")); err != nil || len(found) != 4 {
		t.Errorf("the export wrote %v (%v), want 4 trials", found, err)
	}
	_, r = result(t, dir, "runs", "list")
	if n := len(r["sweeps"].([]any)); n != 1 {
		t.Errorf("%d sweeps, want 1", n)
	}
	for want, args := range map[string][]string{
		"a --param is missing":  {},
		"NAME=VALUES":           {"--param", "lr"},
		"given twice":           {"--param", "lr=0:1", "--param", "lr=0:2"},
		"is not a range":        {"--param", "lr=log:1"},
		`a flag of "gnb train"`: {"--param", "speed=1,2"},
		"whole numbers":         {"--param", "hidden=1:2.5"},
		"list its values":       {"--param", "norm=0:1"},
		`"x"`:                   {"--param", "hidden=4,x"},
	} {
		if status, _, stderr := gnbRun(t, dir, append([]string{"sweep", "karate"}, args...)...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
}

// A sweep compares its trials by the metric of the command line, which is that of their runs, and so does the command that
// trains the best one again.
func TestSweepByMetric(t *testing.T) {
	dir := t.TempDir()
	const ds = "planted?nodes=400&features=4&classes=2"
	for metric, task := range map[string]string{"auc": "nodes", "val_macro_f1": "nodes", "test_ap": "nodes", "recall_5": "links", "test_auc": "links"} {
		status, stdout, stderr := gnbRun(t, dir, "sweep", ds, "--task", task, "--param", "hidden=2,4", "--method", "grid", "--epochs", "1", "--workers", "1", "--metric", metric)
		kind := strings.TrimPrefix(strings.TrimPrefix(metric, "val_"), "test_")
		if status != 0 || !strings.Contains(stdout, " --metric="+kind+" ") {
			t.Fatalf("%s: exit status %d\n%s%s", metric, status, stdout, stderr)
		}
		_, line, _ := strings.Cut(strings.TrimSpace(stdout), "to train the best trial again: gnb ")
		_, again := result(t, dir, strings.Fields(strings.ReplaceAll(line, "'", ""))...)
		name := metric
		if metric == kind {
			name = "val_" + kind
		}
		value, ok := again[name].(float64)
		if shown := fmt.Sprintf("%.4f", value); !ok || !strings.Contains(stdout, shown) {
			t.Errorf("%s: the best trial trained again has %s %s, which is not in\n%s", metric, name, shown, stdout)
		}
	}
	for want, args := range map[string][]string{
		"--seeds repeats the training of nodes": {"--task", "links", "--seeds", "2"},
		"--decoder is for links and triples":    {"--decoder", "dot", "--param", "hidden=2,4"},
		"it must be a flag of":                  {"--param", "decoder=dot,mlp"},
	} {
		if status, _, stderr := gnbRun(t, dir, append([]string{"sweep", ds}, args...)...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
	_, r := result(t, dir, "sweep", ds, "--seeds", "2", "--epochs", "1", "--workers", "1", "--metric", "ap")
	if text := fmt.Sprint(r["values"]); !strings.Contains(text, "val_ap") || !strings.Contains(text, "test_ap") {
		t.Errorf("the values over seeds are %s", text)
	}
	if status, _, stderr := gnbRun(t, dir, "sweep", ds, "--seeds", "2", "--metric", "val_loss"); status == 0 || !strings.Contains(stderr, "nodes are measured by accuracy, auc") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
