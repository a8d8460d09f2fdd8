package tables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// A column of kind predict gives each edge its number: equal rows stay edges of their own, reverses have none, and empty cells are
// unknown. The column split divides them.
func TestEdgeTargets(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"nodes.user.csv": "id,age\n1,20\n2,30\n", "nodes.film.csv": "id,length\n1,90\n2,100\n3,110\n",
		"edges.user.rates.film.csv":   "source,target,stars,seen,split\n2,1,4.5,70,train\n1,1,3,50,train\n1,1,5,40,val\n1,3,,20,\n2,3,1.5,30,test\n",
		"edges.user.follows.user.csv": "source,target\n1,2\n",
	})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said notice.List
	o := Options{Kinds: map[string]Kind{"stars": Predict, "seen": Number}, Reverses: true, Fit: "all", Notice: func(n notice.Notice) { said.Add(n) }}
	ds := read(t, dir+"/ds", f, o)
	src, dst, types := ds.Graph.EdgesAt(ds.EdgeRows)
	rates, err := ds.Schema().Relation("rates")
	if err != nil || ds.Edges() != 12 || len(ds.EdgeRows) != 5 || !slices.Equal(ds.EdgeAnswers.Meta.TargetNames, []string{"stars"}) {
		t.Fatalf("%v, %v, %v", ds, ds.EdgeRows, err)
	}
	films, users := ds.Schema().Starts()[slices.IndexFunc(ds.Meta.NodeTypes, func(n dataset.NodeType) bool { return n.Name == "film" })], ds.Schema().Starts()[slices.IndexFunc(ds.Meta.NodeTypes, func(n dataset.NodeType) bool { return n.Name == "user" })]
	got := map[string]bool{}
	for row, e := range ds.EdgeRows {
		split := ""
		for name, rows := range ds.EdgeAnswers.Splits {
			if slices.Contains(rows, int32(row)) {
				split += name
			}
		}
		x := make([]float32, ds.Graph.EdgeFeatures.Cols)
		ds.Graph.EdgeFeatures.CopyRow(x, e)
		got[strings.TrimSpace(fmt.Sprintln(int(src[row])-users+1, int(dst[row])-films+1, ds.EdgeAnswers.Target(int32(row)), split, x[0] < 0))] = true
		if int(types[row]) != rates {
			t.Errorf("row %d is of relation %d", row, types[row])
		}
	}
	for _, want := range []string{"2 1 [4.5] train false", "1 1 [3] train false", "1 1 [5] val true", "1 3 [NaN]  true", "2 3 [1.5] test true"} {
		if !got[want] { // the mean of seen is 42
			t.Errorf("the edges are %v, without %s", got, want)
		}
	}
	if all := lines(said); !strings.Contains(all, "edges have no known number to predict") || !strings.Contains(all, "(1 of 5)") {
		t.Errorf("the notices are %s", all)
	}
	if _, err := Append(t.Context(), dir+"/more", ds, Files{Edges: []Edges{{Source: "user", Relation: "rates", Target: "film", Path: dir + "/edges.user.rates.film.csv"}}}, AppendOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), "read all tables with the recipe") {
		t.Errorf("Append: %v", err)
	}
	// With the recipe, tables without the numbers and the splits have edges to predict.
	write(t, dir+"/new", map[string]string{
		"nodes.user.csv": "id,age\n7,20\n", "nodes.film.csv": "id,length\n7,90\n", "edges.user.rates.film.csv": "source,target,seen\n7,7,1\n", "edges.user.follows.user.csv": "source,target\n7,7\n",
	})
	r, err := ReadRecipe(dir + "/ds")
	if err != nil {
		t.Fatal(err)
	}
	if f, err = Folder(dir + "/new"); err != nil {
		t.Fatal(err)
	}
	next := read(t, dir+"/next", f, Options{Recipe: r})
	if len(next.EdgeRows) != 1 || next.EdgeAnswers.HasTarget(0) || len(next.EdgeAnswers.Splits["train"]) != 0 {
		t.Errorf("the new edges are %v with %v", next.EdgeRows, next.EdgeAnswers)
	}
}

// Without a column of splits edges are divided at random or by their times; with the same bits whatever the option's order.
func TestEdgeTargetSplits(t *testing.T) {
	nodes := rowsOfNodes("id", 40, func(i int) string { return fmt.Sprint(i) })
	edges := rowsOfNodes("source,target,amount,time", 100, func(i int) string { return fmt.Sprintf("%d,%d,%d.5,%d", i%40, (i*7+1)%40, i, 1000-i) })
	for name, c := range map[string]struct {
		split string
		test  int
		check func(ds *dataset.Dataset, row int32) bool
	}{
		"random": {"", 10, func(*dataset.Dataset, int32) bool { return true }},
		"shares": {"random:0.5,0.2,0.3", 30, func(*dataset.Dataset, int32) bool { return true }},
		"time":   {"time:0.7,0.1,0.2", 20, func(ds *dataset.Dataset, row int32) bool { return ds.EdgeAnswers.Target(row)[0] < 20 }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f := pair(t, nodes, edges)
			ds := read(t, dir+"/ds", f, Options{Kinds: map[string]Kind{"amount": Predict}, Split: c.split, Undirected: true})
			rows := ds.EdgeAnswers.Splits["test"]
			if len(rows) < c.test-2 || len(rows) > c.test || ds.Edges() != 200 || len(ds.EdgeRows) != 100 {
				t.Fatalf("%d edges in test, %v", len(rows), ds)
			}
			for _, row := range rows {
				e := ds.EdgeRows[row]
				i := int64(ds.EdgeAnswers.Target(row)[0])
				src, dst, _ := ds.Graph.EdgesAt([]int64{e})
				if int64(src[0]) != i%40 || int64(dst[0]) != (i*7+1)%40 || ds.Graph.EdgeTimes[e] != 1000-i || !c.check(ds, row) {
					t.Errorf("row %d of test is edge %d → %d of time %d with %v", row, src[0], dst[0], ds.Graph.EdgeTimes[e], ds.EdgeAnswers.Target(row))
				}
			}
		})
	}
}

// Bad numbers of edges are one sentence with the line.
func TestBadEdgeTargets(t *testing.T) {
	nodes := "id\na\nb\nc\n"
	for name, c := range map[string]struct {
		edges string
		o     Options
		want  string
	}{
		"text":         {"source,target,stars\na,b,1\nb,c,good\n", Options{Kinds: map[string]Kind{"stars": Predict}}, `it is a target, and "good"`},
		"all missing":  {"source,target,stars\na,b,\nb,c,\n", Options{Kinds: map[string]Kind{"stars": Predict}}, "every value is missing"},
		"infinite":     {"source,target,stars\na,b,1\nb,c,1e300\n", Options{Kinds: map[string]Kind{"stars": Predict}}, "line 3: the target \"stars\" is \"1e300\", too large for float32"},
		"no node":      {"source,target,stars\na,b,1\nb,d,2\n", Options{Kinds: map[string]Kind{"stars": Predict}}, `line 3: the target "d" is the id of no node`},
		"two targets":  {"source,target,stars\na,b,1\nb,c,2\n", Options{Kinds: map[string]Kind{"target": Target, "stars": Target}}, "a number to predict of an edge is of kind predict"},
		"split":        {"source,target,stars,split\na,b,1,train\nb,c,2,maybe\n", Options{Kinds: map[string]Kind{"stars": Predict}}, `"maybe"`},
		"split twice":  {"source,target,stars,split\na,b,1,train\nb,c,2,val\n", Options{Kinds: map[string]Kind{"stars": Predict}, Split: "random"}, "leave one of them out"},
		"few":          {"source,target,stars\na,b,1\nb,c,2\n", Options{Kinds: map[string]Kind{"stars": Predict}}, "gets none"},
		"no times":     {"source,target,stars\na,b,1\nb,c,2\n", Options{Kinds: map[string]Kind{"stars": Predict}, Split: "time"}, "have no times"},
		"folds":        {"source,target,stars\na,b,1\nb,c,2\n", Options{Kinds: map[string]Kind{"stars": Predict}, Split: "folds:3"}, "divided by random:0.8,0.1,0.1 or time"},
		"nothing said": {"source,target,stars\na,b,1\nb,c,2\n", Options{Split: "random"}, "or edges with numbers to predict"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f := pair(t, nodes, c.edges)
			c.o.Quiet = true
			_, err := Read(t.Context(), dir+"/ds", f, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want one line with %q", err, c.want)
			}
		})
	}
}
