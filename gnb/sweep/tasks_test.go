package sweep_test

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The options of links and of triples are searched as those of nodes are, and a sweep that is started again trains nothing
// twice.
func TestSweepOfTasks(t *testing.T) {
	testneed.NotShort(t, "it trains eight runs")
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, "planted?nodes=300&classes=3&degree=8&seed=2")
	dir := t.TempDir() + "/links"
	started := 0
	again := func(trials int) *sweep.Study {
		study, err := sweep.RunTask(t.Context(), ds, links.Task, func(t *sweep.Trial) links.Options {
			o := links.Options{Model: gnb.GCN}
			o.Decoder = sweep.Choice(t, "decoder", "dot", "mlp")
			o.LR = t.LogFloat("lr", 1e-3, 1e-1)
			o.Hidden, o.Epochs, o.Workers = 8, 2, 1
			return o
		}, sweep.Options{Method: "random", Metric: "val_auc", Trials: trials, Seed: 3, Dir: dir, Quiet: true, Events: func(r sweep.TrialResult) {
			if r.State == "running" {
				started++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return study
	}
	again(2)
	study := again(3)
	best := study.Best()
	if best == nil || len(study.Trials) != 3 || started != 3 {
		t.Fatalf("%d trials after %d starts; the best is %+v", len(study.Trials), started, best)
	}
	run := gnb.Must(runs.Open(best.Run))
	o, err := links.OptionsOf(run)
	if err != nil || o.Model.Name() != "gcn" || o.Hidden != 8 || run.Value("val_auc") != best.Value {
		t.Errorf("the best run has the options %+v (%v), val_auc %v and the value %v", o, err, run.Value("val_auc"), best.Value)
	}

	triples := ring(t, 60)
	of, err := sweep.RunTask(t.Context(), triples, kg.Task, func(t *sweep.Trial) kg.Options {
		o := kg.Options{Decoder: sweep.Choice(t, "decoder", "distmult", "complex"), Dim: 8}
		o.Epochs, o.Workers = 3, 1
		return o
	}, sweep.Options{Method: "grid", Metric: "val_mrr", Quiet: true, Resume: gnb.Never})
	if err != nil {
		t.Fatal(err)
	}
	if len(of.Trials) != 2 || !(of.Best().Value > 0) {
		t.Errorf("triples: %+v", of.Trials)
	}
}

// ring is a knowledge graph: entities on a ring, with a relation to the next one and one to the one after it.
func ring(t *testing.T, n int) *gnb.Dataset {
	t.Helper()
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "entity", Count: n}}, Relations: []graphops.Relation{
		{Src: "entity", Name: "next", Dst: "entity"}, {Src: "entity", Name: "second", Dst: "entity"},
	}}
	var src, dst []int32
	var types []uint16
	for v := range n {
		for r := range 2 {
			src, dst, types = append(src, int32(v)), append(dst, int32((v+r+1)%n)), append(types, uint16(r))
		}
	}
	g, err := graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(schema, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	splits := map[string][]int64{}
	for e := range g.NumEdges() {
		part := []string{"train", "train", "train", "val", "train", "train", "test"}[e%7]
		splits[part] = append(splits[part], e)
	}
	return &dataset.Dataset{Graph: g, EdgeSplits: splits, Meta: dataset.Metadata{Name: "ring"}}
}
