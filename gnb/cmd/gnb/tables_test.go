package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/tables"
)

// customerTables writes tables of customers from number lo to hi, who call old ones, into a folder.
func customerTables(t *testing.T, dir string, lo, hi int, label bool) {
	t.Helper()
	var nodes, edges strings.Builder
	nodes.WriteString("id,plan,spent,churned\n")
	edges.WriteString("caller,callee,weight\n")
	for i := lo; i < hi; i++ {
		y := []string{"no", "yes"}[i%2]
		if !label {
			y = ""
		}
		fmt.Fprintf(&nodes, "c%d,%s,%d,%s\n", i, []string{"basic", "gold", "family"}[i%3], 10+i%2*20+i%7, y)
		fmt.Fprintf(&edges, "c%d,c%d,%d\n", i, (i*7+2)%100/2*2+i%2, 1+i%4)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Tables become a dataset, a model, and predictions with the original ids, also for appended nodes.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	customerTables(t, dir+"/old", 0, 100, true)
	customerTables(t, dir+"/fresh", 100, 106, false)
	_, r := result(t, dir, "data", "convert", "old", "ds", "--kinds", "churned=label", "--undirected")
	if r["format"] != "tables" || r["nodes"] != 100.0 || r["classes"] != 2.0 || r["features"] != 4.0 {
		t.Fatalf("converted to %v", r)
	}
	result(t, dir, "train", "ds", "--epochs", "30", "--lr", "0.02")
	if _, r = result(t, dir, "data", "append", "ds", "fresh", "more"); r["nodes"] != 106.0 || r["name"] != "more" {
		t.Fatalf("appended to %v", r)
	}
	result(t, dir, "infer", "more", "--out", "p.csv")
	text, err := os.ReadFile(dir + "/p.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 107 || lines[0] != "id,class,probability" {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	for i, line := range lines[101:] { // the amount tells the class
		if want := fmt.Sprintf("c%d,%s,0.", 100+i, []string{"no", "yes"}[i%2]); !strings.HasPrefix(line, want) {
			t.Errorf("prediction %q, want %s…", line, want)
		}
	}
	result(t, dir, "infer", "more", "--out", "p.parquet")
	again, err := tables.Read(t.Context(), dir+"/again", tables.Of(dir+"/p.parquet", dir+"/old/edges.csv"), tables.Options{Kinds: map[string]tables.Kind{"class": tables.Label, "id": tables.ID}, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	names, err := again.IDs()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines[1:] { // Parquet has what CSV has
		if want := names[i] + "," + again.Meta.ClassNames[again.Labels[i]] + ","; !strings.HasPrefix(line, want) {
			t.Errorf("the CSV file has %q, and the Parquet file %s", line, want)
		}
	}
	result(t, dir, "infer", "more", "--out", "p.npy")
	ids, err := os.ReadFile(dir + "/p.ids.txt")
	if err != nil || !strings.HasPrefix(string(ids), "c0\nc1\n") || strings.Count(string(ids), "\n") != 106 {
		t.Errorf("ids %.20q, %v", ids, err)
	}

	// Pairs and nodes are read and written by their ids; pairs also by their numbers.
	_, trained := result(t, dir, "train", "ds", "--task", "links", "--epochs", "1")
	run, ok := trained["run"].(string)
	if !ok {
		t.Fatalf("trained %v", trained)
	}
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	first := func(file string, args ...string) string {
		t.Helper()
		result(t, dir, append([]string{"infer", "ds", "--run", run, "--out", file}, args...)...)
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
		line, _, _ := strings.Cut(string(text), "\n")
		return line
	}
	named := first("named.csv", "--pairs", write("named.txt", "from,to\nc7,c12\nc99,c0\n"))
	if numbered := first("numbered.csv", "--pairs", write("numbered.txt", "7,12\n99,0\n")); named != numbered || !strings.HasPrefix(named, "c7,c12,") {
		t.Errorf("pairs by id score %q, by number %q", named, numbered)
	}
	if best := first("best.csv", "--recommend", "1", "--nodes", write("some.txt", "c41\n"), "--candidates", write("of.txt", "c8\n")); !strings.HasPrefix(best, "c41,1,c8,") {
		t.Errorf("recommended is %q", best)
	}
	if status, _, said := gnbRun(t, dir, "infer", "ds", "--run", run, "--out", "x.csv", "--pairs", write("unknown.txt", "c7,c12\nc7,c100\n")); status != 1 || !strings.Contains(said, `"c100" is not the id of one node`) {
		t.Errorf("an unknown id gives %d: %s", status, said)
	}
}

func TestTablesRefuse(t *testing.T) {
	dir := t.TempDir()
	customerTables(t, dir+"/old", 0, 100, true)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "tables", "--largest-component"}, "--largest-component is not for tables"},
		{[]string{"--kinds", "churned"}, "is not COLUMN=VALUE"},
		{[]string{"--kinds", "churned=colour"}, `"colour"`},
		{[]string{"--fit", "some"}, "Fit is"},
		{[]string{"--missing", "?", "--kinds", "nothing=text"}, `"nothing"`},
	} {
		var o, e bytes.Buffer
		status := dispatch(t.Context(), append([]string{"data", "convert", dir + "/old", dir + "/ds"}, c.args...), &o, &e)
		if status == 0 || !strings.Contains(e.String(), c.want) {
			t.Errorf("%v: status %d, %q; want %q", c.args, status, e.String(), c.want)
		}
	}
	if _, err := os.Stat(dir + "/ds"); err == nil {
		t.Error("a refused conversion left a dataset")
	}
}
