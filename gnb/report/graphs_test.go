package report_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// many is a dataset of five graphs with answers by hand, p(a) first:
//
//	graph 0 (a): 1 node                         p(a) = 0.9
//	graph 1 (b): 2 nodes, 1 edge                p(b) = 0.7
//	graph 2 (a): 2 nodes, 2 edges               p(b) = 0.8, wrong
//	graph 3    : no node; no label              p(a) = 0.5
//	graph 4 (b): 3 nodes, 3 edges; not in test  p(b) = 0.6
func many(t *testing.T) (*gnb.Dataset, *graphs.Answers) {
	ds := &gnb.Dataset{
		Graph:        graph(t, 8, 1, 2, 3, 4, 4, 3, 5, 6, 6, 7, 7, 5),
		Features:     &dataset.Matrix{Rows: 8, Cols: 1, F32: make([]float32, 8)},
		GraphOffsets: []int64{0, 1, 3, 5, 5, 8},
		Graphs: &gnb.Dataset{
			Labels: []int32{0, 1, 0, -1, 1},
			Splits: map[string][]int32{"train": {4}, "test": {0, 1, 2, 3}},
			Meta:   dataset.Metadata{NumClasses: 2, ClassNames: []string{"a", "b"}},
		},
		Meta: dataset.Metadata{Name: "many"},
	}
	ds.Describe()
	rows := &dataset.Matrix{Rows: 5, Cols: 2}
	for _, p := range []float64{.9, .3, .2, .5, .4} {
		rows.F32 = append(rows.F32, float32(math.Log(p)), float32(math.Log(1-p)))
	}
	return ds, &graphs.Answers{Rows: rows}
}

func TestGraphsByHand(t *testing.T) {
	ds, a := many(t)
	all, err := report.NewGraphs(ds, a, report.Options{IDs: []string{"v", "w", "x", "y", "z"}})
	if err != nil {
		t.Fatal(err)
	}
	r := all.Classes
	loss := -(math.Log(.9) + math.Log(.7) + math.Log(.2)) / 3
	if all.Numbers != nil || r.Of != "graphs" || r.Nodes != 3 || r.Skipped != 1 || !near(r.Accuracy, 2./3) || !near(r.Loss, loss) || r.Confusion[0][1] != 1 || r.Classes[1].Recall != 1 || r.AUC == nil || !near(*r.AUC, .5) {
		t.Errorf("%+v", r)
	}
	// Each of the sizes 1 and 2, and each of 0, 1 and 2 edges, is a part.
	if want := []report.Group{{"1", 1, 1}, {"2", 2, .5}}; !slices.EqualFunc(r.ByNodes, want, sameGroup) {
		t.Errorf("by nodes %v, want %v", r.ByNodes, want)
	}
	if want := []report.Group{{"0", 1, 1}, {"1", 1, 1}, {"2", 1, 0}}; !slices.EqualFunc(r.ByEdges, want, sameGroup) {
		t.Errorf("by edges %v, want %v", r.ByEdges, want)
	}
	if r.ByDegree != nil || r.ByHomophily != nil {
		t.Errorf("graphs have degrees %v and neighbourhoods %v", r.ByDegree, r.ByHomophily)
	}
	if m := r.Mistakes; len(m) != 1 || m[0].ID != "x" || m[0].Node != 2 || *m[0].Size != (report.Size{Nodes: 2, Edges: 2}) {
		t.Errorf("mistakes %+v", m)
	}
	text := all.String()
	for _, want := range []string{"many: 3 graphs of the split test", "1 graph without a label", "accuracy by nodes\nnodes of the graph  graphs  accuracy", "graph  class  predicted  probability  nodes  edges\nx      a      b"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "neighbour") {
		t.Errorf("the text speaks of neighbours of graphs:\n%s", text)
	}
	for _, f := range all.Figures() {
		if b, err := f.PNG(); err != nil || len(b) < 1000 {
			t.Errorf("a picture of %d bytes, %v", len(b), err)
		}
	}
	path := filepath.Join(t.TempDir(), "p.csv")
	if err := r.WriteCSV(path); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "graph,id,label,predicted,p:a,p:b\n0,v,a,a,0.9,0.1\n") || strings.Count(string(b), "\n") != 6 {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(all); err != nil || !strings.Contains(string(b), `"of":"graphs"`) || !strings.Contains(string(b), `"size":{"nodes":2,"edges":2}`) || strings.Contains(string(b), "numbers") {
		t.Errorf("%s, %v", b, err)
	}
}

// Several labels of a graph are predictions of yes or no, and graphs are named by the ids of their tables.
func TestGraphsOfSeveralLabels(t *testing.T) {
	ds, a := many(t)
	ds.Graphs.Labels, ds.Graphs.MultiLabels = nil, &dataset.Multi{Rows: 5, Cols: 2, Data: []int8{1, 0, -1, 1, 0, 0, -1, -1, 0, 0}}
	a.Rows.F32 = []float32{1, -1, 9, 2, 3, -1, 0, 0, -1, -1}
	ds.Meta.Graphs = nil
	ds.Describe()
	dir := filepath.Join(t.TempDir(), "ds")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dataset.GraphNamesFile), []byte("v\nw\nx\ny\nz\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	all, err := report.NewGraphs(ds, a, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := all.Classes
	// Of five known labels, that of graph 2 alone is wrong; the share of graph 2 is a half.
	if r.Nodes != 3 || r.Confusion != nil || !near(r.Accuracy, .8) || len(r.Mistakes) != 1 || r.Mistakes[0].ID != "x" || r.Mistakes[0].Class != "not a" {
		t.Errorf("%+v", r)
	}
	if want := []report.Group{{"1", 1, 1}, {"2", 2, .75}}; !slices.EqualFunc(r.ByNodes, want, sameGroup) {
		t.Errorf("by nodes %v, want %v", r.ByNodes, want)
	}
}

// The report of a run of numbers of graphs has the run's measures, and its groups are those of sizes.
func TestReportOfGraphsRun(t *testing.T) {
	ds := gnb.Must(gnb.Load(t.Context(), "molecules?graphs=300"))
	o := graphs.Options{Predict: "targets", LossOptions: numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.1, 0.5, 0.9}}}
	o.Epochs, o.Hidden, o.Layers, o.Quiet, o.RunDir = 3, 16, 2, true, filepath.Join(t.TempDir(), "run")
	run, err := graphs.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := report.OfGraphs(t.Context(), run, ds, report.Options{Mistakes: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := all.Numbers
	sum := 0.0
	for _, e := range r.Targets {
		sum += e.MAE / float64(len(r.Targets))
	}
	if all.Classes != nil || r.Of != "graphs" || r.Model != "gine for graphs" || math.Abs(sum-run.Value("test_mae")) > 1e-5 {
		t.Errorf("the report of %s has the MAE %v of %s, the run %v", r.Model, sum, r.Of, run.Value("test_mae"))
	}
	a, err := graphs.Infer(t.Context(), run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	test, err := ds.Graphs.Split("test")
	if err != nil {
		t.Fatal(err)
	}
	e := r.Targets[0]
	if len(e.ByNodes) < 2 || len(e.ByEdges) < 2 || e.ByDegree != nil || len(e.ByRange) < 5 || len(e.Quantiles) != 3 || len(e.Worst) != 3 {
		t.Fatalf("%+v", e)
	}
	smallest, bias, most, graphsIn := math.MaxInt, 0.0, 0.0, 0
	for _, g := range test {
		lo, hi := ds.GraphSpan(g)
		smallest = min(smallest, int(hi-lo))
		most = max(most, math.Abs(float64(a.Row(int(g))[1])-float64(ds.Graphs.Target(g)[0])))
	}
	for _, g := range e.ByNodes {
		graphsIn += g.Nodes
		bias += g.Bias * float64(g.Nodes) / float64(len(test))
	}
	if graphsIn != len(test) || math.Abs(bias-e.Bias) > 1e-6 || !strings.HasPrefix(e.ByNodes[0].Name, strconv.Itoa(smallest)) {
		t.Errorf("the parts have %d of %d graphs, and the bias %v instead of %v; the first one is %s, and the smallest graph has %d nodes", graphsIn, len(test), bias, e.Bias, e.ByNodes[0].Name, smallest)
	}
	if w := e.Worst[0]; math.Abs(math.Abs(w.Error)-most) > 1e-6 || w.Size == nil || w.Size.Nodes == 0 {
		t.Errorf("the worst is %+v, want an error of %v", w, most)
	}
	for _, f := range all.Figures() {
		if b, err := f.PNG(); err != nil || len(b) < 1000 {
			t.Errorf("a picture of %d bytes, %v", len(b), err)
		}
	}
	if _, err := report.Of(t.Context(), run, ds, report.Options{}); err == nil || !strings.Contains(err.Error(), "take report.OfGraphs") {
		t.Errorf("a report of nodes: %v", err)
	}
	pooled, err := graphs.Embed(t.Context(), run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.NewGraphs(ds, pooled, report.Options{}); err == nil || !strings.Contains(err.Error(), "pooled rows") {
		t.Errorf("a report of pooled rows: %v", err)
	}
}

func TestGraphsRefused(t *testing.T) {
	for want, set := range map[string]func(ds *gnb.Dataset, a *graphs.Answers, o *report.Options){
		"it is one graph": func(ds *gnb.Dataset, _ *graphs.Answers, _ *report.Options) { ds.Graphs, ds.GraphOffsets = nil, nil },
		"predictions for 4 graphs": func(_ *gnb.Dataset, a *graphs.Answers, _ *report.Options) {
			a.Rows.Rows, a.Rows.F32 = 4, a.Rows.F32[:8]
		},
		"the output for graph 2":            func(_ *gnb.Dataset, a *graphs.Answers, _ *report.Options) { a.Rows.F32[4] = float32(math.Inf(1)) },
		"the graphs of many have no labels": func(ds *gnb.Dataset, _ *graphs.Answers, _ *report.Options) { ds.Graphs.Labels = nil },
		"no graph of the split":             func(ds *gnb.Dataset, _ *graphs.Answers, _ *report.Options) { ds.Graphs.Splits["test"] = []int32{3} },
		"graphs have no types":              func(_ *gnb.Dataset, _ *graphs.Answers, o *report.Options) { o.Type = "atom" },
		"2 names and many has 5 graphs":     func(_ *gnb.Dataset, _ *graphs.Answers, o *report.Options) { o.IDs = []string{"a", "b"} },
	} {
		ds, a := many(t)
		o := report.Options{}
		set(ds, a, &o)
		if _, err := report.NewGraphs(ds, a, o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
