package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// "gnb predict" answers for known customers and for new ones of tables as "gnb infer" does on the tables with them appended, and
// refuses what it cannot answer with a sentence.
func TestPredictCommand(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	write := func(name string, lines ...string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes, edges := []string{"id,plan,spent,churned"}, []string{"caller,callee,weight"}
	for v := range 60 {
		nodes = append(nodes, fmt.Sprintf("c%d,%s,%d,%s", v, []string{"free", "pro"}[v%2], v*7%50, []string{"no", "yes"}[v*v%3%2]))
		edges = append(edges, fmt.Sprintf("c%d,c%d,%d", v, (v*11+3)%60, 1+v%3), fmt.Sprintf("c%d,c%d,1", v*5%60, v))
	}
	write("customers/nodes.csv", nodes...)
	write("customers/edges.csv", edges...)
	fresh, calls := []string{"id,plan,spent", "n1,free,12", "n2,gold,"}, []string{"caller,callee,weight", "n1,c3,2", "c4,n1,1", "n2,n1,3"}
	write("more/nodes.csv", fresh...)
	write("more/edges.csv", calls...)
	write("request.json", `{"nodes": [{"id": "n1", "columns": {"plan": "free", "spent": "12"}}, {"id": "n2", "columns": {"plan": "gold", "spent": ""}}],`,
		`"edges": [{"source": "n1", "target": "c3", "columns": {"weight": "2"}}, {"source": "c4", "target": "n1", "columns": {"weight": "1"}}, {"source": "n2", "target": "n1", "columns": {"weight": "3"}}]}`)
	result(t, dir, "data", "convert", "customers", "mine", "--format", "tables", "--undirected", "--kinds", "churned=label")
	_, trained := result(t, dir, "train", "mine", "--model", "gcn", "--epochs", "2", "--hidden", "16")
	run := trained["run"].(string)
	result(t, dir, "data", "append", "mine", "more", "both")
	result(t, dir, "infer", "both", "--run", run, "--out", "both.csv")
	f, err := os.Open(filepath.Join(dir, "both.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, line := range lines {
		want[line[0]] = line[1] + " " + line[2]
	}
	answers := func(args ...string) map[string]string {
		t.Helper()
		_, r := result(t, dir, append([]string{"predict", run}, args...)...)
		got := map[string]string{}
		for _, x := range r["answers"].([]any) {
			a := x.(map[string]any)
			got[a["id"].(string)] = fmt.Sprintf("%s %.6f", a["class"], a["probability"])
		}
		return got
	}
	for _, args := range [][]string{{"--rows", "more/nodes.csv", "--edges", "more/edges.csv"}, {"--rows", "request.json"}, {"--rows", "request.json", "--fanout", "full", "--threads", "2"}} {
		got := answers(args...)
		for _, id := range []string{"n1", "n2"} {
			if !sameAnswer(got[id], want[id]) {
				t.Errorf("%v: %s is %q, and appended it is %q", args, id, got[id], want[id])
			}
		}
	}
	if got := answers("c3", "c17", "--fanout", "2,2"); len(got) != 2 {
		t.Errorf("two customers: %v", got)
	}
	for args, sentence := range map[string]string{
		"c999":                       `"c999" is the id of no node of mine`,
		"c3 --max-edges 2":           "has more than 2 edges",
		"c3 --fanout 2":              "have 2 hops",
		"":                           "there is nothing to answer",
		"--edges more/edges.csv":     "--rows is missing",
		"c3 --rows more/nodes.csv":   "ask for known nodes and for new ones apart",
		"--pairs more/edges.csv":     "pairs are in the columns source and target",
		"--rows customers/edges.csv": `has no column "id"`,
		"--rows customers/nodes.csv": "is that of a node of mine already",
		"--rows mine/metadata.json":  "is not the JSON object expected",
		"--rows more/nodes.csv --edges customers/edges.csv": "has a new node at one end",
	} {
		status, _, said := gnbRun(t, dir, append([]string{"predict", run}, strings.Fields(args)...)...)
		if status == 0 || !strings.Contains(said, sentence) {
			t.Errorf("gnb predict RUN %s: status %d, %q; want %q", args, status, said, sentence)
		}
	}
}

// sameAnswer compares a class and a probability of six decimals with those of a table, which has the shortest text.
func sameAnswer(got, want string) bool {
	var a, b string
	var p, q float64
	n, _ := fmt.Sscan(got, &a, &p)
	m, _ := fmt.Sscan(want, &b, &q)
	return n == 2 && m == 2 && a == b && p-q < 2e-6 && q-p < 2e-6
}
