package gnb

import (
	"encoding/json"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu"
)

// countWork runs a step of a SAGE layer on the whole graph and reports the counted work.
var countWork = Program("test.countwork", func(w *Worker, hidden int) error {
	ds := w.Dataset()
	net := SAGE.New(w, ModelConfig{In: ds.FeatureDim(), Hidden: hidden, Out: ds.Classes(), Layers: 1})
	opt := w.SGD(net, 0.1)
	for range w.Epochs(2) {
		b := w.FullGraph("train")
		w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
	}
	w.Result("flop", float64(w.report.rate.work.FLOP))
	w.Result("rows", float64(w.report.rate.work.RowBytes))
	w.Result("edges", float64(w.report.rate.edges))
	w.Result("busy", w.report.rate.busy.Seconds())
	return nil
})

// A GraphSAGE layer with mean aggregation on the whole graph needs 2·2·n·d·c FLOP forward, for the
// nodes themselves and for the mean of their neighbours, and as many again for the gradients of
// both weights. With fewer output than input columns, the layer multiplies first, so edges read
// rows of c elements, forward and backward. Two steps count twice.
func TestWorkOfARun(t *testing.T) {
	if multigpu.InWorker() {
		t.Fatal("a worker runs tests")
	}
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := dataset.Karate()
	raw, err := json.Marshal(3)
	if err != nil {
		t.Fatal(err)
	}
	run, err := start(t.Context(), countWork.name, raw, LaunchOptions{Data: ds, Workers: 2, Threads: 1, Device: "cpu", Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	n, d, c, e := float64(ds.Nodes()), float64(ds.FeatureDim()), float64(ds.Classes()), float64(ds.Edges())
	for _, want := range []struct {
		name  string
		value float64
	}{{"flop", 2 * 2 * 4 * n * d * c}, {"rows", 2 * 2 * 4 * e * c}, {"edges", 2 * e}} {
		if got := run.Value(want.name); got != want.value {
			t.Errorf("%s: %v, want %v", want.name, got, want.value)
		}
	}
	if run.Value("busy") <= 0 {
		t.Error("steps outside of loops have no recorded time")
	}
}
