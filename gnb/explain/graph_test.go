package explain_test

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Features of a whole graph have scores beside those of its nodes, and all together add up to what they make of the output.
func TestFeaturesOfGraphsAreExplained(t *testing.T) {
	ds := *load(t, "molecules?graphs=150")
	g := *ds.Graphs
	g.Features, g.Meta.FeatureNames = wave(150, 2), []string{"heat", "age"}
	for i := range 150 { // the number follows from it
		g.Targets.F32[i] = 10 * g.Features.F32[2*i]
	}
	ds.Graphs, ds.Meta.Graphs = &g, nil
	ds.Describe()
	o := graphs.Options{Predict: "targets"}
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.LR, o.Quiet, o.RunDir = 1, 1, 16, 2, 30, 0.01, true, t.TempDir()
	run, err := graphs.Train(t.Context(), &ds, o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := graphs.Open(t.Context(), run, &ds, graphs.OpenOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []explain.Method{explain.Gradients, explain.LeaveOut, explain.Mask} {
		e, err := explain.GraphWith(t.Context(), n, "5", explain.Options{Method: method, Steps: 200, Epochs: 50})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(e.Columns, func(c explain.Column) bool { return c.Type == "graph" && c.Name == "heat" })
		if at < 0 || e.Columns[at].Value != float64(g.Features.F32[10]) || e.Columns[at].All == 0 {
			t.Fatalf("%s: the columns are %+v", method, e.Columns)
		}
		if method != explain.Gradients {
			continue
		}
		sum, makes := 0.0, [2]float64{}
		for _, c := range e.Columns {
			sum += c.All
		}
		err = n.Graph(t.Context(), "5", func(in *graphs.Input) error {
			for i, by := range []float32{0, 1} {
				f := nn.NewFwd(nn.Config{Threads: 1})
				y, err := in.Forward(f, f.Scale(f.Input(len(in.Nodes), in.Cols, in.X, in.Space), float64(by)), f.Scale(f.Input(1, 2, in.Own, nil), float64(by)))
				if err != nil {
					return err
				}
				makes[i] = n.Number(0, y.Data()[0])
			}
			return nil
		})
		if want := makes[1] - makes[0]; err != nil || math.Abs(sum-want) > 0.03*math.Abs(want)+0.1 || math.Abs(e.Value-makes[1]) > 1e-3 {
			t.Errorf("the scores add up to %v, and the features make %v; %v is explained (%v)", sum, want, e.Value, err)
		}
	}
}
