package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// stars writes tables of users, films and ratings, and returns the folder. Ids of users and of films are the same numbers. A rating
// is 3, plus 1 if the film's genre is the favourite of the user, which only the other ratings tell.
func stars(t *testing.T, dir string) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	users, films, edges := "id,age\n", "id,genre\n", "source,target,stars,seen\n"
	for i := range 64 {
		films += fmt.Sprintf("%d,g%d\n", i, i%4)
	}
	for u := range 200 {
		users += fmt.Sprintf("%d,%d\n", u, 18+r.IntN(50))
		favourite := r.IntN(4)
		for k, f := range r.Perm(64)[:40] {
			if k%4 > 0 && f%4 != favourite {
				continue
			}
			y := 3 + 0.1*r.NormFloat64()
			if f%4 == favourite {
				y++
			}
			edges += fmt.Sprintf("%d,%d,%.3f,%d\n", u, f, y, r.IntN(1000))
		}
	}
	path := filepath.Join(dir, "stars")
	for file, text := range map[string]string{"nodes.user.csv": users, "nodes.film.csv": films, "edges.user.rates.film.csv": edges} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// From tables with a column of ratings to a model, and to the ratings of new pairs: convert, train, resume, sweep, infer.
func TestNumbersOfEdgesOfTables(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	_, stats := result(t, dir, "data", "convert", stars(t, dir), "mine", "--format", "tables", "--reverses", "--kinds", "stars=predict", "--split", "random:0.7,0.1,0.2")
	if stats["edge_targets"] != 1. || stats["target_edges"].(float64) < 2000 {
		t.Errorf("the conversion says %v", stats)
	}
	_, shown := result(t, dir, "data", "show", "mine")
	if s, ok := shown["target_edge_splits"].(map[string]any); !ok || s["test"].(float64) < 400 {
		t.Errorf("the splits are %v", shown["target_edge_splits"])
	}
	if of := shown["targets_of_splits"].([]any); len(of) != 4 || of[0].(map[string]any)["edges"] != true {
		t.Errorf("the targets are %v", of)
	}
	args := []string{"train", "mine", "--task", "numbers", "--epochs", "15", "--batch", "64", "--seed", "1"}
	_, got := result(t, dir, append(args, "--workers", "1", "--virtual-ranks", "2")...)
	has(t, got, "loss", "val_mae", "test_mae", "test_rmse", "test_r2", "mean_mae", "best_epoch")
	if rmse := got["test_rmse"].(float64); rmse > 0.25 || got["mean_rmse"].(float64) < 0.4 {
		t.Errorf("the RMSE is %v with a noise of 0.1, and the mean's %v", rmse, got["mean_rmse"])
	}
	run := got["run"].(string)
	_, two := result(t, dir, append(args, "--workers", "2", "--virtual-ranks", "1")...)
	_, again := result(t, dir, "train", "--resume", run)
	for _, name := range []string{"loss", "test_mae", "test_r2"} {
		if two[name] != got[name] || again[name] != got[name] {
			t.Errorf("%s is %v, with two workers %v, resumed %v", name, got[name], two[name], again[name])
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pairs.csv"), []byte("source,target\n7,3\n3,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, r := result(t, dir, "infer", "mine", "--run", run, "--pairs", "pairs.csv", "--out", "p.csv")
	text, err := os.ReadFile(filepath.Join(dir, "p.csv"))
	if lines := strings.Split(string(text), "\n"); err != nil || r["edges"] != 2. || len(lines) != 4 || lines[0] != "source,target,stars" || !strings.HasPrefix(lines[1], "7,3,") || !strings.HasPrefix(lines[2], "3,7,") {
		t.Errorf("%v, %q, %v", r, text, err)
	}
	_, r = result(t, dir, "infer", "mine", "--run", run, "--training-edges", "--out", "all.npy", "--workers", "2")
	x, err := dataset.ReadNPY(filepath.Join(dir, "all.npy"))
	if err != nil || float64(x.Rows) != r["edges"] || math.Abs(r["values"].(map[string]any)["all_mae"].(float64)) > 0.25 {
		t.Errorf("the array has %d rows, %v, %v", x.Rows, r, err)
	}
	if ids, err := os.ReadFile(filepath.Join(dir, "all.ids.txt")); err != nil || strings.Count(string(ids), "\n") != x.Rows || strings.Count(string(ids), "\t") != x.Rows {
		t.Errorf("the ids are %.20q, %v", ids, err)
	}
	_, study := result(t, dir, "sweep", "mine", "--task", "numbers", "--epochs", "2", "--param", "lr=0.001,0.01", "--param", "ends-only=true", "--method", "grid", "--dir", "s")
	if len(study["trials"].([]any)) != 2 {
		t.Errorf("the sweep is %v", study)
	}
	for _, c := range []struct{ args, want string }{
		{"train mine --task numbers --of nodes", "the nodes and edges of mine have no numbers to predict"},
		{"train mine --task numbers --relation likes", `no relation "likes"`},
		{"infer mine --run " + run + " --recommend 3 --out x.csv", "--recommend is for runs that predict links"},
		{"partition mine --parts 2 --out parts", "has targets of edges, which parts do not hold yet"},
	} {
		status, _, stderr := gnbRun(t, dir, strings.Fields(c.args)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("gnb %s: status %d, %q, want %q", c.args, status, stderr, c.want)
		}
	}
}
