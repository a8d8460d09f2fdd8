package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// "gnb embed" writes embeddings with their ids, the same bits for one and two workers, and others by node2vec
// and by a model.
func TestEmbed(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	args := []string{"embed", linkData, "--dim", "8", "--epochs", "1", "--walks", "2", "--length", "8", "--json"}
	seen := map[string]string{}
	for name, more := range map[string][]string{
		"deepwalk": {"--digest"}, "node2vec": {"--p", "4", "--q", "0.5", "--negatives", "2"}, "sage": {"--model", "sage", "--fanout", "4,3", "--hidden", "8"},
	} {
		var files [][]byte
		for i, workers := range []string{"1", "2"} {
			out := filepath.Join(dir, name+workers+".npy")
			_, r := result(t, dir, append(append(args, more...), "--workers", workers, "--virtual-ranks", strconv.Itoa(2-i), "--out", out)...)
			has(t, r, "loss", "steps", "run", "ids")
			if r["nodes"].(float64) != 300 || r["columns"].(float64) != 8 || r["out"] != out || name == "deepwalk" && r["digest"] == "" {
				t.Errorf("%s: the result is %v", name, r)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, b)
			inRun, err := os.ReadFile(filepath.Join(r["run"].(string), "embeddings.npy"))
			if err != nil || !bytes.Equal(inRun, b) {
				t.Errorf("%s: the run's directory has other embeddings (%v)", name, err)
			}
			ids, err := dataset.ReadNPY(r["ids"].(string))
			if err == nil {
				t.Errorf("ids are integers, but were read as %v", ids)
			}
			if b, err := os.ReadFile(r["ids"].(string)); err != nil || !bytes.Contains(b[:128], []byte("(300,)")) || b[len(b)-4] != byte(299-256) || b[len(b)-3] != 1 {
				t.Errorf("%s: the ids are not 0 to 299 (%v)", name, err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: two workers have other embeddings than one", name)
		}
		if other, twice := seen[string(files[0])]; twice {
			t.Errorf("%s and %s have the same embeddings", name, other)
		}
		seen[string(files[0])] = name
	}
	// CSV has the ids in the first column, and the numbers of the array.
	out := filepath.Join(dir, "x.csv")
	_, r := result(t, dir, append(args, "--resume", "never", "--virtual-ranks", "2", "--out", out)...)
	x, err := dataset.ReadNPY(filepath.Join(r["run"].(string), "embeddings.npy"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 301 || strings.Join(rows[0], " ") != "node x0 x1 x2 x3 x4 x5 x6 x7" {
		t.Fatalf("%d rows, %v, %v", len(rows), rows[0], err)
	}
	for v, row := range rows[1:] {
		if row[0] != strconv.Itoa(v) {
			t.Fatalf("row %d is of node %s", v, row[0])
		}
		for c, text := range row[1:] {
			if y, err := strconv.ParseFloat(text, 32); err != nil || float32(y) != x.F32[8*v+c] {
				t.Fatalf("number %d of node %d is %s, want %v", c, v, text, x.F32[8*v+c])
			}
		}
	}
}

// An interrupted run resumes by the same command, and by its directory alone, with the same embeddings.
func TestEmbedResumes(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	args := []string{"embed", linkData, "--dim", "8", "--epochs", "40", "--walks", "3", "--length", "8", "--window", "3", "--q", "0.5", "--negatives", "2", "--negatives-from", "degree75", "--lr", "0.02", "--batch", "64", "--seed", "9"}
	run := interruptedTraining(t, dir, args...)
	npy := func(r map[string]any) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(r["run"].(string), "embeddings.npy"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, r := result(t, t.TempDir(), append(args, "--json")...)
	want := npy(r)
	aside := copied(t, run)
	_, again := result(t, aside, "embed", "--resume", filepath.Join("runs", filepath.Base(run)), "--json")
	_, same := result(t, dir, append(args, "--json")...)
	if !strings.HasSuffix(same["run"].(string), filepath.Base(run)) {
		t.Errorf("the same command continued %v, want %s", same["run"], run)
	}
	if again["steps"] != r["steps"] || same["steps"] != r["steps"] {
		t.Errorf("steps are %v and %v, want %v", again["steps"], same["steps"], r["steps"])
	}
	if npy(same) != want {
		t.Error("resumed by the same command, the run has other embeddings")
	}
	b, err := os.ReadFile(filepath.Join(aside, "runs", filepath.Base(run), "embeddings.npy"))
	if err != nil || string(b) != want {
		t.Errorf("resumed by its directory, the run has other embeddings (%v)", err)
	}
}

func TestEmbedFlags(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	for _, c := range []struct{ args, want string }{
		{"", "the DATASET is missing"},
		{"karate --out x.txt", `--out is "x.txt"; its name ends in .npy or .csv`},
		{"karate --hidden 8", "model table has no layers"},
		{"karate --model x", `there is no model "x"`},
		{"karate --window 0", "--window is 0; it must be at least 1"},
		{"karate --window -1", "--window is -1"},
		{"karate --p -1", "--p is -1; it is a number above 0"},
		{"karate --q NaN", "P is 0 and Q is NaN; they are numbers above 0"},
		{"karate --negatives-from far", `there are no negatives "far"`},
		{"karate --negatives-from in-batch", "walks take no negatives from the batch"},
		{"karate --dim -1", "--dim is -1"},
		{"karate --resume none", "none"},
		{"nosuch", "nosuch"},
	} {
		status, said := say(t, append([]string{"embed"}, strings.Fields(c.args)...)...)
		if status == 0 || !strings.Contains(said, c.want) || strings.Contains(said, "goroutine") {
			t.Errorf("gnb embed %s: status %d, %s; want %s", c.args, status, said, c.want)
		}
	}
}
