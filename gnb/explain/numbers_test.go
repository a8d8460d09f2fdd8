package explain_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// The explanation of a number is in its unit: the answer, and the scores, which add up to what the features make of it.
func TestNumbersHaveTheirUnit(t *testing.T) {
	ds := *load(t, "planted?nodes=300&classes=3&features=4")
	ds.Labels, ds.Meta.NumClasses, ds.Meta.ClassNames = nil, 0, nil
	ds.Targets = &dataset.Matrix{Rows: 300, Cols: 1}
	for v := range 300 {
		ds.Targets.F32 = append(ds.Targets.F32, 5000+800*ds.Features.Row(v)[1])
	}
	ds.Meta.TargetNames = []string{"price"}
	ds.Describe()
	var o numbers.Options
	o.Model = gnb.SAGE
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Quiet, o.RunDir = 1, 1, 16, 2, 20, true, t.TempDir()
	run, err := numbers.Train(t.Context(), &ds, o)
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, run, &ds)
	e := node(t, p, "8", explain.Options{Steps: 200})
	a, err := p.Nodes(t.Context(), "8")
	if err != nil || e.Output != "price" || math.Abs(e.Value-float64(a.Rows.F32[0])) > 0.5 {
		t.Errorf("%s %v is explained, and the answer is %v (%v)", e.Output, e.Value, a, err)
	}
	var none float64
	err = p.Neighbourhood(t.Context(), "8", func(n *predict.Neighbourhood) error {
		y, err := forward(n, make([]float32, len(n.X)))
		if err == nil {
			none = n.Number(0, y[0])
		}
		return err
	})
	sum := 0.0
	for _, c := range e.Columns {
		sum += c.All
	}
	if err != nil || math.Abs(sum-(e.Value-none)) > 0.02*math.Abs(e.Value-none)+2 || e.Columns[0].Name != "1" || len(e.Notes) > 0 {
		t.Errorf("the scores add up to %v, and the features make %v: %+v (%v)", sum, e.Value-none, e.Columns, err)
	}
	if _, err := report.OfNumbers(t.Context(), run, &ds, report.Options{Quiet: true, Explain: explain.Sample{}}); err == nil || !strings.Contains(err.Error(), "these are numbers") {
		t.Errorf("a report of numbers is explained: %v", err)
	}
}

// A node that was added has the values with which it was added.
func TestAddedNodeIsExplained(t *testing.T) {
	ds, _ := shop(t)
	p := open(t, train(t, ds, gnb.SAGE, options()), ds)
	columns := map[string]string{"plan": "plus", "spent": "12.5", "since": "2021-05-01", "note": ""}
	if _, err := p.Add(t.Context(), predict.Additions{Nodes: []predict.Node{{ID: "today", Columns: columns}}, Edges: []predict.Edge{{Source: "c3", Target: "today"}}}); err != nil {
		t.Fatal(err)
	}
	e := node(t, p, "today", explain.Options{Steps: 5})
	for _, r := range e.Raw {
		if want := columns[r.Name]; r.Exact && r.Value != want || r.Name != "note" && !r.Exact {
			t.Errorf("%s is %q (%v), and was added as %q", r.Name, r.Value, r.Exact, want)
		}
	}
	if len(e.Edges) == 0 || e.Edges[0].Src != "c3" && e.Edges[0].Dst != "c3" {
		t.Errorf("the edges are %v", e.Edges)
	}
	if _, err := explain.With(t.Context(), p, "tomorrow", explain.Options{}); !errors.Is(err, predict.ErrUnknownNode) {
		t.Error(err)
	}
}
