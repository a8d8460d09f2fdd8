package scaling_test

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// quick are options of a launch that shows nothing.
var quick = gnb.LaunchOptions{Seed: 3, Quiet: true, Threads: 1}

// The steps of a run on whole graphs are measured: rates and batches count graphs, not their nodes, and no work is repeated,
// because a graph is in one worker's batch.
func TestScalingOfGraphs(t *testing.T) {
	ds := load(t, "molecules?graphs=200")
	o := graphs.Options{Predict: "labels"}
	o.Batch, o.Hidden, o.Layers, o.LaunchOptions = 64, 8, 2, quick
	c, err := scaling.MeasureTask(t.Context(), ds, graphs.Task, o, scaling.How{Repeats: 1, Steps: 5, WarmUp: 1}, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if c.Unit != "graphs" || c.Task != graphs.TrainProgram || c.Model != "gine for graphs" || len(c.Points) != 2 {
		t.Fatalf("curve %+v", c)
	}
	for _, p := range c.Points {
		// 160 graphs in batches of 64, 64 and 32: five of them after the first step have 224 or 256 graphs.
		if n := p.Rate * p.Seconds * 5; p.Batch != 64 || math.Abs(n-224) > 0.5 && math.Abs(n-256) > 0.5 || p.SeedsPerSecond != 0 {
			t.Errorf("%d workers: %v graphs in 5 steps, batch %d", p.Workers, n, p.Batch)
		}
		if p.RepeatedEdges != 1 || p.RepeatedRows != 1 || p.Edges == 0 || p.Stages["forward"] <= 0 {
			t.Errorf("%d workers: %+v", p.Workers, p)
		}
	}
	if s := c.String(); !strings.Contains(s, "graphs/s") || strings.Contains(s, "seeds") || !strings.Contains(s, "strong scaling of gine for graphs on molecules") {
		t.Errorf("the text is\n%s", s)
	}
	weak := o
	weak.Batch, weak.BatchPerWorker = 0, 20
	if c, err = scaling.MeasureTask(t.Context(), ds, graphs.Task, weak, scaling.How{Weak: true, Repeats: 1, Steps: 2, WarmUp: 1}, []int{1, 2}); err != nil || c.Points[1].Batch != 40 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Tasks that sample neighbours repeat work, as nodes do, and their counts are those of the batches of the task.
func TestScalingOfOtherTasks(t *testing.T) {
	ds := load(t, smallSet)
	ds.Targets = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1}
	for v := range ds.Nodes() {
		ds.Targets.F32 = append(ds.Targets.F32, ds.Features.Row(v)[0])
	}
	how := scaling.How{Repeats: 1, Steps: 3, WarmUp: 1}
	var n numbers.Options
	n.Fanouts, n.Batch, n.Hidden, n.LaunchOptions = []int{4, 3}, 400, 16, quick
	var l links.Options
	l.Fanouts, l.Batch, l.Hidden, l.LaunchOptions = []int{4, 3}, 400, 16, quick
	ofNumbers, err := scaling.MeasureTask(t.Context(), ds, numbers.Task, n, how, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	ofLinks, err := scaling.MeasureTask(t.Context(), ds, links.Task, l, how, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for unit, c := range map[string]scaling.Curve{"seeds": ofNumbers, "links": ofLinks} {
		one, two := c.Points[0], c.Points[1]
		if c.Unit != unit || one.RepeatedEdges != 1 || two.RepeatedEdges <= 1 || two.RepeatedRows <= 1 || two.UniqueEdges != one.UniqueEdges || two.UniqueRows != one.Rows || one.Batch != 400 || one.SeedsPerSecond > 0 != (unit == "seeds") {
			t.Errorf("%s: one worker %+v, two %+v", c.Unit, one, two)
		}
	}
}

func TestScalingOfTasksRefuses(t *testing.T) {
	ds := load(t, smallSet)
	var l links.Options
	l.LaunchOptions = quick
	for want, set := range map[string]func(o *links.Options, how *scaling.How){
		"more workers do not make them faster": func(o *links.Options, _ *scaling.How) { o.FullGraph = true },
		"set BatchPerWorker":                   func(_ *links.Options, how *scaling.How) { how.Weak = true },
		"leave Workers":                        func(o *links.Options, _ *scaling.How) { o.Workers = 2 },
		"smaller batch":                        func(o *links.Options, how *scaling.How) { how.Weak, o.BatchPerWorker = true, 1<<20 },
		"Dropout":                              func(o *links.Options, _ *scaling.How) { o.Dropout = 2 },
	} {
		o, how := l, scaling.How{Repeats: 1, Steps: 2, WarmUp: 1}
		set(&o, &how)
		if c, err := scaling.MeasureTask(t.Context(), ds, links.Task, o, how, []int{1, 2}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(c.Points) > 0 {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := scaling.MeasureTask(t.Context(), nil, links.Task, l, scaling.How{}, []int{1}); err == nil || !strings.Contains(err.Error(), "needs a dataset") {
		t.Errorf("without a dataset: %v", err)
	}
}
