package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tables of many graphs become a dataset, a run of --task graphs, a sweep by the task's own metric, and a file with the graphs' own
// ids; the run resumes, and what does not fit is refused in a sentence.
func TestTrainGraphs(t *testing.T) {
	dir := t.TempDir()
	command(t) // built from the package's directory
	t.Chdir(dir)
	var graphs, nodes, edges strings.Builder
	graphs.WriteString("graph,solubility\n")
	nodes.WriteString("graph,node,atom\n")
	edges.WriteString("graph,source,target,bond\n")
	for g := range 40 {
		name := "m" + string(rune('a'+g%26)) + string(rune('a'+g/26))
		size := 3 + g%5
		graphs.WriteString(name + "," + []string{"-1.5", "-0.25", "0.5", "1.75", "2.125"}[g%5] + "\n")
		for v := range size {
			nodes.WriteString(name + "," + string(rune('0'+v)) + "," + []string{"C", "N", "O"}[(g+v)%3] + "\n")
			if v > 0 {
				edges.WriteString(name + "," + string(rune('0'+v-1)) + "," + string(rune('0'+v)) + "," + []string{"single", "double"}[v%2] + "\n")
			}
		}
	}
	for name, text := range map[string]string{"graphs.csv": graphs.String(), "nodes.csv": nodes.String(), "edges.csv": edges.String()} {
		if err := os.MkdirAll("raw", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("raw", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(want string, args ...string) string {
		t.Helper()
		code, stdout, stderr := gnbRun(t, dir, args...)
		out := stdout + stderr
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("gnb %s: %d, want %q\n%s", strings.Join(args, " "), code, want, out)
		}
		return out
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if code, stdout, stderr := gnbRun(t, dir, args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("gnb %s: %d, want an error with %q\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
	}
	do("40 graphs", "data", "convert", "raw", "small", "--undirected")
	do("val_mae", "train", "small", "--task", "graphs", "--epochs", "3", "--workers", "2", "--run", "runs/one", "--json")
	do("graphs/s", "train", "small", "--task", "graphs", "--epochs", "2", "--run", "runs/shown")
	do("m", "infer", "small", "--run", "runs/one", "--out", "answers.csv")
	text, err := os.ReadFile("answers.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 41 || lines[0] != "graph,solubility" || !strings.HasPrefix(lines[1], "maa,") {
		t.Errorf("the answers are %d lines: %q …", len(lines), lines[:2])
	}
	do("val_mae", "sweep", "small", "--task", "graphs", "--epochs", "2", "--param", "pool=sum,mean")
	do(" graphs, ", "plan", "small", "--task", "graphs", "--workers", "2")
	refused("--machines", "plan", "small", "--task", "graphs", "--workers", "2", "--machines", "2")
	refused("labels", "train", "small")
	refused("--pool is for graphs", "train", "karate", "--pool", "sum")
	refused("one graph, not a dataset of many", "train", "karate", "--task", "graphs")
	refused("attention", "train", "small", "--task", "graphs", "--pool", "median")
}
