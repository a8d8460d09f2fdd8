package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// houses writes tables whose price is 200 + 3·size - 20·age with a noise of 5, for houses first to last-1 with edges to others,
// and returns the folder.
func houses(t *testing.T, dir, name string, first, last int, priced bool) string {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 9))
	var nodes, edges strings.Builder
	nodes.WriteString("id,size,age")
	if priced {
		nodes.WriteString(",price")
	}
	nodes.WriteString("\n")
	edges.WriteString("source,target\n")
	for i := range last {
		size, age, noise := 50+100*r.Float64(), 10*r.Float64(), r.NormFloat64()
		if i < first {
			continue
		}
		fmt.Fprintf(&nodes, "h%d,%.2f,%.2f", i, size, age)
		if priced {
			fmt.Fprintf(&nodes, ",%.3f", 200+3*size-20*age+5*noise)
		}
		fmt.Fprintf(&nodes, "\n")
		for k := range 3 {
			fmt.Fprintf(&edges, "h%d,h%d\n", (i*7+k*13)%last, i)
		}
	}
	path := filepath.Join(dir, name)
	for file, text := range map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// From tables with a column of prices to a model, and to the prices of new houses: convert, train, resume, append, infer.
func TestNumbersOfTables(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	_, stats := result(t, dir, "data", "convert", houses(t, dir, "tables", 0, 800, true), "mine", "--format", "tables", "--kinds", "price=target")
	if stats["targets"] != 1. || stats["classes"] != 0. {
		t.Errorf("the conversion says %v", stats)
	}
	args := []string{"train", "mine", "--task", "numbers", "--epochs", "40", "--batch", "64", "--hidden", "32", "--loss", "huber", "--delta", "0.5", "--seed", "1", "--tensorboard"}
	_, got := result(t, dir, append(args, "--workers", "1", "--virtual-ranks", "2")...)
	has(t, got, "loss", "val_mae", "test_mae", "test_rmse", "test_r2", "test_nmae", "mean_mae", "mean_rmse", "best_epoch")
	if rmse := got["test_rmse"].(float64); rmse > 12 || got["test_r2"].(float64) < 0.95 || got["mean_rmse"].(float64) < 80 {
		t.Errorf("the RMSE is %v with a noise of 5, R² %v, and the mean's %v", rmse, got["test_r2"], got["mean_rmse"])
	}
	run := got["run"].(string)
	if board, err := filepath.Glob(filepath.Join(run, "events.out.tfevents*")); err != nil || len(board) != 1 {
		t.Errorf("TensorBoard has the files %v, %v", board, err)
	}
	_, two := result(t, dir, append(args, "--workers", "2", "--virtual-ranks", "1")...)
	_, again := result(t, dir, "train", "--resume", run)
	for _, name := range []string{"loss", "test_mae", "test_r2"} {
		if two[name] != got[name] || again[name] != got[name] {
			t.Errorf("%s is %v, with two workers %v, resumed %v", name, got[name], two[name], again[name])
		}
	}

	result(t, dir, "data", "append", "mine", houses(t, dir, "new", 800, 900, false), "more")
	_, r := result(t, dir, "infer", "more", "--run", run, "--out", "prices.csv")
	if r["nodes"] != 900. || r["values"].(map[string]any)["all_mae"].(float64) > 15 || len(r["columns"].([]any)) != 1 {
		t.Errorf("infer: %v", r)
	}
	f, err := os.Open(filepath.Join(dir, "prices.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 901 || rows[0][0] != "id" || rows[0][1] != "price" || rows[850][0] != "h849" {
		t.Fatalf("%d rows, %v, %v", len(rows), rows[0], err)
	}
	truth := map[string]float64{}
	text, err := os.ReadFile(filepath.Join(houses(t, dir, "truth", 800, 900, true), "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		p := strings.Split(line, ",")
		truth[p[0]], _ = strconv.ParseFloat(p[3], 64)
	}
	sum := 0.0
	for _, row := range rows[801:] {
		x, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Abs(x-truth[row[0]]) / 100
	}
	if sum > 15 {
		t.Errorf("the prices of new houses are wrong by %v on average", sum)
	}
	result(t, dir, "infer", "more", "--run", run, "--out", "prices.npy", "--workers", "2")
	x, err := dataset.ReadNPY(filepath.Join(dir, "prices.npy"))
	if err != nil || x.Rows != 900 || x.Cols != 1 || shortest(x.F32[849]) != rows[850][1] {
		t.Errorf("the array is %v, %v", x, err)
	}
	if ids, err := os.ReadFile(filepath.Join(dir, "prices.ids.txt")); err != nil || !strings.HasPrefix(string(ids), "h0\nh1\n") {
		t.Errorf("the ids are %.20q, %v", ids, err)
	}
	for _, c := range []struct{ args, want string }{
		{"train mine", "no labels"},
		{"train mine --task numbers --targets cost", `has "cost", and the targets of mine are price`},
		{"train mine --task numbers --quantiles 0.5", "only the loss quantile"},
		{"train mine --task numbers --metric auc", "mae, rmse, r2 and nmae"},
		{"train mine --task numbers --decoder dot", "--decoder is for links"},
		{"train planted?nodes=300 --task numbers", "--task nodes) predicts classes"},
		{"infer more --run " + run + " --layer 1 --out x.npy", "predicts numbers"},
		{"infer more --run " + run + " --pairs p --out x.npy", "--pairs is for runs that predict links"},
		{"infer planted?nodes=300 --run " + run + " --out x.npy", "features a node, and the network of run"},
	} {
		status, _, stderr := gnbRun(t, dir, strings.Fields(c.args)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("gnb %s: status %d, %q, want %q", c.args, status, stderr, c.want)
		}
	}
}

// A sweep of numbers looks for the lowest error by itself, and says how to train the best trial again.
func TestSweepNumbers(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	result(t, dir, "data", "convert", houses(t, dir, "tables", 0, 300, true), "mine", "--format", "tables", "--kinds", "price=target")
	_, got := result(t, dir, "sweep", "mine", "--task", "numbers", "--epochs", "3", "--param", "lr=0.0001,0.02", "--param", "loss=squared,absolute", "--method", "grid", "--dir", "s")
	best := got["best"].(map[string]any)
	lowest := math.Inf(1)
	for _, trial := range got["trials"].([]any) {
		lowest = min(lowest, trial.(map[string]any)["value"].(float64))
	}
	if got["metric"] != "val_mae" || got["minimize"] != true || best["value"] != lowest || len(got["trials"].([]any)) != 4 {
		t.Errorf("the sweep is %v", got)
	}
	status, stdout, stderr := gnbRun(t, dir, "sweep", "mine", "--dir", "s", "--epochs", "3", "--param", "lr=0.0001,0.02", "--param", "loss=squared,absolute", "--method", "grid")
	if status != 0 || !strings.Contains(stdout, "gnb train mine --task=numbers") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// Targets of one type of nodes train on a typed graph, by an R-GCN unless another model is chosen; nodes of other types have
// predictions too, and count nowhere.
func TestNumbersOfTypedTables(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 1))
	var users, items, likes strings.Builder
	users.WriteString("id,age\n")
	items.WriteString("id,weight,price\n")
	likes.WriteString("source,target\n")
	for i := range 60 {
		fmt.Fprintf(&users, "u%d,%.1f\n", i, 20+40*r.Float64())
	}
	for i := range 400 {
		w := r.Float64()
		fmt.Fprintf(&items, "i%d,%.3f,%.3f\n", i, w, 10+5*w+0.2*r.NormFloat64())
		fmt.Fprintf(&likes, "u%d,i%d\nu%d,i%d\n", i%60, i, (i*7+1)%60, i)
	}
	for name, text := range map[string]string{"nodes.user.csv": users.String(), "nodes.item.csv": items.String(), "edges.user.likes.item.csv": likes.String()} {
		path := filepath.Join(dir, "tables", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result(t, dir, "data", "convert", "tables", "shop", "--format", "tables", "--kinds", "price=target", "--reverses")
	_, got := result(t, dir, "train", "shop", "--task", "numbers", "--epochs", "60", "--batch", "64", "--hidden", "16")
	if got["test_r2"].(float64) < 0.8 {
		t.Errorf("R² is %v, with a noise of 0.2 and a deviation of 1.4", got["test_r2"])
	}
	_, p := result(t, dir, "infer", "shop", "--out", "prices.csv")
	text, err := os.ReadFile(filepath.Join(dir, "prices.csv"))
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 461 || p["nodes"] != 460. {
		t.Errorf("%d lines, %v: %v", len(lines), p, err)
	}
}
