package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gnb explain says what an answer rests on, as text, JSON and a picture.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	_, trained := result(t, dir, "train", "karate", "--epochs", "20", "--workers", "1")
	run := trained["run"].(string)
	status, text, stderr := gnbRun(t, dir, "explain", run, "33", "--picture", "x.png")
	for _, want := range []string{"node 33 of karate", "hops away", "with them alone"} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.png")); err != nil {
		t.Error(err)
	}
	_, r := result(t, dir, "explain", run, "0", "33", "--method", "mask", "--epochs", "20")
	all := r["explanations"].([]any)
	if len(all) != 2 || all[1].(map[string]any)["node"] != "33" || len(all[1].(map[string]any)["edges"].([]any)) == 0 {
		t.Errorf("the result is %v", r)
	}
	for want, args := range map[string][]string{
		"is no node of karate":            {"explain", run, "99"},
		`there is no method "magic"`:      {"explain", run, "1", "--method", "magic"},
		"--picture is of one explanation": {"explain", run, "1", "2", "--picture", "y.png"},
		"nothing is to be explained":      {"explain", run},
		"does not predict links":          {"explain", run, "--pair", "1,2"},
		"for nodes or for pairs":          {"explain", run, "1", "--pair", "1,2"},
		"a comma between them":            {"explain", run, "--pair", "12"},
	} {
		if status, _, stderr := gnbRun(t, dir, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("gnb %v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

// gnb explain explains pairs by a run that predicts links, and whole graphs; gnb report explains a sample of a split.
func TestExplainPairsAndGraphs(t *testing.T) {
	dir := t.TempDir()
	_, trained := result(t, dir, "train", "planted?nodes=200", "--task", "links", "--epochs", "2", "--workers", "1")
	status, text, stderr := gnbRun(t, dir, "explain", trained["run"].(string), "--pair", "3,4", "--pair", "5,6", "--out", "x.csv")
	if status != 0 || !strings.Contains(text, "the pair 3 → 4 of planted: score") || !strings.Contains(text, "the pair 5 → 6") {
		t.Errorf("status %d, %s: it prints\n%s", status, stderr, text)
	}
	rows, err := os.ReadFile(filepath.Join(dir, "x.csv"))
	if err != nil || !strings.Contains(string(rows), "\n5 → 6,score,gradients,node,") {
		t.Errorf("the table is\n%s (%v)", rows, err)
	}
	_, trained = result(t, dir, "train", "molecules?graphs=60", "--task", "graphs", "--predict", "labels", "--epochs", "2", "--workers", "1")
	status, text, stderr = gnbRun(t, dir, "explain", trained["run"].(string), "3", "--method", "leave-out")
	if status != 0 || !strings.Contains(text, "graph 3 of molecules") {
		t.Errorf("status %d, %s: it prints\n%s", status, stderr, text)
	}
	if status, _, stderr := gnbRun(t, dir, "explain", trained["run"].(string), "--pair", "3,4"); status == 0 || !strings.Contains(stderr, "predicts whole graphs") {
		t.Errorf("a pair of graphs: status %d, %s", status, stderr)
	}
	if status, text, stderr := gnbRun(t, dir, "report", trained["run"].(string), "--html", "graphs.html"); status != 0 || !strings.Contains(text, "graphs of the split test") {
		t.Errorf("a report of graphs: status %d, %s\n%s", status, stderr, text)
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	_, trained := result(t, dir, "train", "planted?nodes=400&classes=3", "--epochs", "5", "--workers", "1")
	run := trained["run"].(string)
	status, text, stderr := gnbRun(t, dir, "report", run, "--explain", "30", "--html", "r.html", "--out", "p.csv")
	for _, want := range []string{"accuracy by degree", "columns that matter, by 30 nodes of the split"} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	for _, name := range []string{"r.html", "p.csv"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	_, r := result(t, dir, "report", run, "--split", "val")
	if of := r["report"].(map[string]any); of["split"] != "val" || of["reasons"] != nil {
		t.Errorf("the result is %v", r)
	}
	for want, args := range map[string][]string{
		"masks have no scores": {"report", run, "--explain", "5", "--method", "mask"},
		"--explain is -1":      {"report", run, "--explain", "-1"},
		"no such split":        {"report", run, "--split", "none"},
	} {
		if status, _, stderr := gnbRun(t, dir, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("gnb %v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}
