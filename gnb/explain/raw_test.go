package explain_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/gnb/tables"
)

// shop writes two tables, whose labels follow from one of the columns alone, and reads them.
func shop(t *testing.T) (*gnb.Dataset, [][]string) {
	t.Helper()
	dir := t.TempDir()
	rows := [][]string{{"id", "plan", "spent", "since", "note", "left"}}
	calls := [][]string{{"caller", "callee"}}
	for v := range 300 {
		row := []string{
			fmt.Sprintf("c%d", v), []string{"basic", "plus", "pro"}[v*7%3], strconv.Itoa(v * v % 83), fmt.Sprintf("20%02d-%02d-01", 10+v%13, 1+v%12),
			fmt.Sprintf("words %d", v%5), []string{"no", "yes"}[(v*v%83)/42],
		}
		if v%20 == 3 {
			row[1] = ""
		}
		rows = append(rows, row)
		calls = append(calls, []string{row[0], fmt.Sprintf("c%d", (v*3+1)%300)})
	}
	for name, all := range map[string][][]string{"nodes.csv": rows, "edges.csv": calls} {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(csv.NewWriter(f).WriteAll(all), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ds, err := tables.Read(t.Context(), filepath.Join(dir, "shop"), tables.Of(filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "edges.csv")), tables.Options{
		Undirected: true, Quiet: true, Kinds: map[string]tables.Kind{"left": tables.Label, "spent": tables.Number, "plan": tables.Category, "note": tables.Text},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds, rows
}

// Columns of tables have the values that the tables have, by their ids and categories, and the score of one is that of all features that
// it became. A hashed text cannot be told, and is not.
func TestRawColumnsAreThoseOfTheTables(t *testing.T) {
	ds, rows := shop(t)
	p := open(t, train(t, ds, gnb.SAGE, options()), ds)
	for _, v := range []int{0, 3, 17, 123} {
		row := rows[v+1]
		e := node(t, p, row[0], explain.Options{Steps: 5})
		if len(e.Raw) != 4 || e.Node != row[0] {
			t.Fatalf("node %s has %d columns: %+v", e.Node, len(e.Raw), e.Raw)
		}
		features, own := map[string]float64{}, map[string]float64{}
		for _, c := range e.Columns {
			features[c.Name], own[c.Name] = c.All, c.Own
		}
		at := map[string]int{"plan": 1, "spent": 2, "since": 3}
		for _, r := range e.Raw {
			if k, ok := at[r.Name]; ok != r.Exact || ok && r.Value != row[k] {
				t.Errorf("%s of %s is %q (%v), and the table has %v", r.Name, e.Node, r.Value, r.Exact, row)
			}
			all, mine := 0.0, 0.0
			for _, name := range r.Features {
				all += features[name]
				mine += own[name]
			}
			if math.Abs(all-r.All) > 1e-12 || math.Abs(mine-r.Own) > 1e-12 {
				t.Errorf("%s of %s has the scores %v and %v, and its features %v and %v", r.Name, e.Node, r.All, r.Own, all, mine)
			}
		}
		if e.Raw[0].Name != "spent" {
			t.Errorf("the label follows from spent alone, and the first column of %s is %s", e.Node, e.Raw[0].Name)
		}
		for _, n := range e.Nodes {
			u := number(t, n.Node[1:])
			if name, value, ok := strings.Cut(n.Most, " = "); ok && name == "spent" && value != rows[u+1][2] {
				t.Errorf("%s rests on %q, and the table has %v", n.Node, n.Most, rows[u+1])
			}
		}
		if e.Nodes[0].Most == "" {
			t.Errorf("no column of %s has a score", e.Nodes[0].Node)
		}
		text := e.String()
		for _, want := range []string{" " + row[2] + " ", "(text of about 2 different words)"} {
			if !strings.Contains(text, want) {
				t.Errorf("it prints\n%s\nwithout %q", text, want)
			}
		}
		if v == 3 && !strings.Contains(text, "missing") {
			t.Errorf("the missing plan is not told:\n%s", text)
		}
	}
}

// A contrast is the difference of two explanations, and is refused where there is none.
func TestThan(t *testing.T) {
	ds := load(t, "planted?nodes=300&classes=3&features=5")
	p := open(t, train(t, ds, gnb.GCN, options()), ds)
	a, b := node(t, p, "9", explain.Options{Output: "0"}), node(t, p, "9", explain.Options{Output: "2"})
	both := node(t, p, "9", explain.Options{Output: "0", Than: "2"})
	of := func(e *explain.Explanation) map[string]float64 {
		m := map[string]float64{}
		for _, c := range e.Columns {
			m["c"+c.Name] = c.All
		}
		for _, x := range e.Edges {
			m[x.Src+">"+x.Dst] = x.Score
		}
		return m
	}
	x, y := of(a), of(b)
	for k, z := range of(both) {
		if math.Abs(z-(x[k]-y[k])) > 1e-4 {
			t.Errorf("%s: %v rather than %v has %v", k, x[k], y[k], z)
		}
	}
	if !strings.Contains(both.String(), "rather than 2") {
		t.Error(both)
	}
	for want, o := range map[string]explain.Options{
		"itself":              {Output: "1", Than: "1"},
		"Options.Than is \"x": {Than: "x"},
		"masks keep":          {Than: "0", Output: "1", Method: explain.Mask},
	} {
		if _, err := explain.With(t.Context(), p, "9", o); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// A table has a row for each score, in each format, and the JSON form has all.
func TestTableIsWritten(t *testing.T) {
	ds, _ := shop(t)
	p := open(t, train(t, ds, gnb.SAGE, options()), ds)
	all := explain.Table{node(t, p, "c1", explain.Options{Steps: 3}), node(t, p, "c2", explain.Options{Steps: 3})}
	dir := t.TempDir()
	for _, end := range []string{".csv", ".json", ".parquet", ".arrow"} {
		if err := all.Write(filepath.Join(dir, "x"+end)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(filepath.Join(dir, "x.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	want := 1
	for _, e := range all {
		want += len(e.Raw) + len(e.Columns) + len(e.Nodes) + len(e.Edges)
	}
	if err != nil || len(rows) != want || rows[1][0] != "c1" || rows[1][3] != "raw" || rows[1][4] != all[0].Raw[0].Name || rows[1][9] != all[0].Raw[0].Value {
		t.Errorf("%d rows of %d, the first %v: %v", len(rows), want, rows[:2], err)
	}
	columns, back, err := tables.ReadRows(t.Context(), filepath.Join(dir, "x.parquet"))
	if err != nil || len(columns) != len(rows[0]) || len(back) != want-1 || back[0][9] != rows[1][9] {
		t.Errorf("Parquet has %v and %d rows: %v", columns, len(back), err)
	}
	if err := all.Write(filepath.Join(dir, "x.txt")); err == nil || !strings.Contains(err.Error(), "ends in .csv") {
		t.Errorf("a table of another kind: %v", err)
	}
}

// Of a large neighbourhood the strongest nodes are drawn, each joined to the explained one, and the drawing says what it leaves out.
func TestLargeNeighbourhoodIsDrawn(t *testing.T) {
	ds := load(t, "planted?nodes=2000&classes=3&features=5&degree=20")
	p := open(t, train(t, ds, gnb.SAGE, options()), ds)
	e := node(t, p, "9", explain.Options{Method: explain.GradientInput})
	f := e.Figure()
	if _, err := f.SVG(); err != nil {
		t.Fatal(err)
	}
	text := f.String()
	if !strings.Contains(text, "neighbourhood, edges by their scores: 40 nodes") || !strings.Contains(text, fmt.Sprintf("left out: %d nodes", len(e.Nodes)-40)) {
		t.Errorf("of %d nodes it draws\n%s", len(e.Nodes), text)
	}
}

// The explained answer for a graph is that of graphs.Infer, and scores of its nodes' features add up to the difference that they make.
func TestGraphIsExplained(t *testing.T) {
	ds := load(t, "molecules?graphs=200")
	o := graphs.Options{Predict: "labels", Pool: "attention", VirtualNode: true}
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Quiet, o.RunDir = 1, 1, 16, 3, 4, true, t.TempDir()
	run, err := graphs.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := graphs.Infer(t.Context(), run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := graphs.Open(t.Context(), run, ds, graphs.OpenOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []int{0, 7, 123} {
		id := strconv.Itoa(g)
		class, probability := a.Class(g)
		e, err := explain.GraphWith(t.Context(), n, id, explain.Options{Steps: 200})
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := ds.GraphSpan(int32(g))
		if e.Graph != id || e.Output != a.ClassName(class) || math.Abs(e.Value-probability) > 1e-5 || len(e.Nodes) != int(hi-lo) {
			t.Errorf("graph %d: %s %v of %d nodes is explained, and the answer is %s %v", g, e.Output, e.Value, len(e.Nodes), a.ClassName(class), probability)
		}
		leave, err := explain.GraphWith(t.Context(), n, id, explain.Options{Method: explain.LeaveOut})
		if err != nil || len(leave.Edges) != len(e.Edges) || leave.Columns[0].All == 0 {
			t.Errorf("graph %d, left out: %v", g, err)
		}
		if _, err := e.Figure().SVG(); err != nil {
			t.Error(err)
		}
		columns, nodes := 0.0, 0.0
		for _, c := range e.Columns {
			columns += c.All
		}
		for _, v := range e.Nodes {
			nodes += v.Score
		}
		if math.Abs(columns-nodes) > 1e-9*math.Abs(columns)+1e-9 {
			t.Errorf("graph %d: the scores of columns add up to %v and those of nodes to %v", g, columns, nodes)
		}
	}
	if _, err := explain.GraphWith(t.Context(), n, "200", explain.Options{}); !errors.Is(err, graphs.ErrUnknownGraph) {
		t.Errorf("an unknown graph: %v", err)
	}
	shown, err := explain.Graph(t.Context(), run, ds, "7", explain.Options{})
	if err != nil || !strings.Contains(shown.String(), "graph 7 of molecules") {
		t.Errorf("%v: %v", shown, err)
	}
}

// A sample of a split has the means of single explanations: of all nodes, each against the true class or the second one.
func TestSampleIsTheMeanOfExplanations(t *testing.T) {
	ds, _ := shop(t)
	run := train(t, ds, gnb.SAGE, options())
	r, err := report.Of(t.Context(), run, ds, report.Options{Quiet: true, Split: "test", Explain: explain.Sample{Full: true, Steps: 7}})
	if err != nil {
		t.Fatal(err)
	}
	test, err := ds.Split("test")
	if err != nil || r.Reasons == nil || r.Reasons.Nodes != len(test) || r.Reasons.Nodes != r.Nodes {
		t.Fatalf("%+v of %d nodes: %v", r.Reasons, len(test), err)
	}
	p := open(t, run, ds)
	sums, nodes := map[string]map[string]float64{}, map[string]int{}
	for _, v := range test {
		id := fmt.Sprintf("c%d", v)
		a, err := p.Nodes(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		class, _ := a.Class(0)
		e := node(t, p, id, explain.Options{Steps: 7, Output: class, Than: map[string]string{"yes": "no", "no": "yes"}[class]})
		if nodes[class]++; sums[class] == nil {
			sums[class] = map[string]float64{}
		}
		for _, raw := range e.Raw {
			sums[class][raw.Name] += raw.All
		}
	}
	for _, c := range r.Reasons.Classes {
		if c.Nodes != nodes[c.Class] || len(c.Columns) != 4 || c.Columns[0].Name != "spent" {
			t.Errorf("the class %s: %+v", c.Class, c)
		}
		for _, col := range c.Columns {
			if want := sums[c.Class][col.Name] / float64(c.Nodes); math.Abs(col.Mean-want) > 1e-6*math.Abs(want)+1e-6 || col.Size < math.Abs(col.Mean)-1e-9 {
				t.Errorf("%s of %s: mean %v and size %v, want %v", col.Name, c.Class, col.Mean, col.Size, want)
			}
		}
	}
	some, err := report.Of(t.Context(), run, ds, report.Options{Quiet: true, Explain: explain.Sample{Nodes: 10, Seed: 4, Fanouts: []int{2, 2}}})
	if err != nil || some.Reasons.Nodes != 10 || !strings.Contains(some.String(), "2, 2 neighbours at each hop") {
		t.Errorf("%+v, %v", some, err)
	}
	if _, err := report.Of(t.Context(), run, ds, report.Options{Quiet: true, Explain: explain.Sample{Method: explain.Mask}}); err == nil || !strings.Contains(err.Error(), "mask") {
		t.Errorf("masks: %v", err)
	}
}
