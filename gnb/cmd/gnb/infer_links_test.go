package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// "gnb infer" of a run that predicts links writes embeddings, scores of pairs and recommendations.
func TestInferLinks(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	_, trained := result(t, dir, "train", linkData, "--task", "links", "--epochs", "2", "--batch", "256", "--hidden", "16", "--json")
	run := trained["run"].(string)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read := func(name string) []string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	pairs, nodes := write("pairs.csv", "source,target\n0,1\n5,299\n"), write("nodes.txt", "7\n0\n")
	infer := func(args ...string) map[string]any {
		_, r := result(t, dir, append([]string{"infer", linkData, "--run", run, "--json"}, args...)...)
		return r
	}

	if r := infer("--out", "h.npy"); r["nodes"] != 300. || r["seconds"] == nil {
		t.Errorf("embeddings: %v", r)
	}
	h, err := dataset.ReadNPY(filepath.Join(dir, "h.npy"))
	if err != nil || h.Rows != 300 || h.Cols != 16 {
		t.Errorf("the embeddings are %v, %v", h, err)
	}

	if r := infer("--pairs", pairs, "--out", "scores.csv", "--workers", "2"); r["pairs"] != 2. || r["seconds"] == nil {
		t.Errorf("pairs: %v", r)
	}
	lines := read("scores.csv")
	if len(lines) != 3 || lines[0] != "source,target,score" || !strings.HasPrefix(lines[1], "0,1,") || !strings.HasPrefix(lines[2], "5,299,") {
		t.Errorf("the scores are %q", lines)
	}
	infer("--pairs", pairs, "--out", "scores.npy")
	if x, err := dataset.ReadNPY(filepath.Join(dir, "scores.npy")); err != nil || x.Rows != 2 || x.Cols != 1 || lines[1] != "0,1,"+shortest(x.F32[0]) {
		t.Errorf("the array of scores is %v, %v", x, err)
	}

	if r := infer("--recommend", "3", "--nodes", nodes, "--exclude-known", "--out", "best.csv"); r["nodes"] != 2. {
		t.Errorf("recommendations: %v", r)
	}
	lines = read("best.csv")
	if len(lines) != 7 || lines[0] != "node,rank,recommended,score" || !strings.HasPrefix(lines[1], "7,1,") || !strings.HasPrefix(lines[6], "0,3,") {
		t.Errorf("the recommendations are %q", lines)
	}
	infer("--recommend", "2", "--candidates", nodes, "--training-edges", "--out", "best.npy")
	if b, err := os.ReadFile(filepath.Join(dir, "best.npy")); err != nil || !strings.Contains(string(b), "'<i4'") || !strings.Contains(string(b), "(300, 2)") {
		t.Errorf("the array of recommendations is %.80q, %v", b, err)
	}
	for _, c := range []struct{ args, want string }{
		{"--pairs " + pairs + " --recommend 2 --out x.csv", "--pairs and --recommend are given"},
		{"--recommend 0 --out x.csv", "--recommend is 0; it is the number of nodes to recommend"},
		{"--nodes " + nodes + " --out x.csv", "--nodes goes with --recommend K"},
		{"--recommend 300 --out x.csv", "K is 300; choose 1 to 299, the number of candidates"},
		{"--pairs none.csv --out x.csv", "no such file"},
		{"--pairs " + write("words.csv", "n0,n3\n") + " --out x.csv", `line 1 is "n0,n3"`},
		{"--pairs " + write("header.csv", "source,target\n") + " --out x.csv", "header.csv has no pairs"},

		{"--pairs " + write("far.csv", "0,300\n") + " --out x.csv", "pair 0 is 0 → 300, but planted has the nodes 0 to 299"},
		{"--pairs " + write("bad.csv", "0,1\n0,NaN\n") + " --out x.csv", `line 2 is "0,NaN"`},
		{"--recommend 2 --nodes " + write("empty", "") + " --out x.csv", "has no nodes"},
	} {
		status, _, stderr := gnbRun(t, dir, append([]string{"infer", linkData, "--run", run}, strings.Fields(c.args)...)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %s; want %s", c.args, status, stderr, c.want)
		}
	}
	if status, _, stderr := gnbRun(t, dir, "infer", "karate", "--run", run, "--out", "x.npy"); status != 1 || !strings.Contains(stderr, "karate has 34 features a node, and the network of run") {
		t.Errorf("another dataset: status %d, %s", status, stderr)
	}
	_, other := result(t, dir, "train", linkData, "--epochs", "1", "--json")
	if status, _, stderr := gnbRun(t, dir, "infer", linkData, "--run", other["run"].(string), "--pairs", pairs, "--out", "x.csv"); status != 2 || !strings.Contains(stderr, "--pairs is for runs that predict links") {
		t.Errorf("a run of classes: status %d, %s", status, stderr)
	}
}

func shortest(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }
