package numbers_test

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// TestMain becomes a worker, or a cell, if a test starts this binary as one.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("GNB_TEST_CELL") != "" {
		runtest.Main(m, map[string]func([]byte) error{"numbers": runCell})
	}
	dir, err := os.MkdirTemp("", "numbers")
	if err == nil {
		err = os.Setenv("GNB_RUNS", dir) // of the examples
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var nan = float32(math.NaN())

// planted is a random graph whose nodes have linear targets: price = 300 + 50·(w·x + noise), with the given deviation of the
// noise, and weight = 2·(mean of w·x over the in-neighbours). Six in ten nodes are for training.
func planted(nodes int, noise float64) *gnb.Dataset {
	r := rand.New(rand.NewPCG(7, uint64(nodes)))
	const cols, degree = 6, 4
	var src, dst []int32
	for v := range int32(nodes) {
		for range degree {
			src, dst = append(src, r.Int32N(int32(nodes))), append(dst, v)
		}
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{})
	if err != nil {
		panic(err)
	}
	w := []float64{1, -0.5, 0.25, 0, 0.75, -1}
	x, own := make([]float32, nodes*cols), make([]float64, nodes)
	for v := range nodes {
		for c := range cols {
			x[v*cols+c] = float32(r.NormFloat64())
			own[v] += w[c] * float64(x[v*cols+c])
		}
	}
	targets := make([]float32, 2*nodes)
	for v := range nodes {
		mean := 0.0
		for _, u := range g.InNeighbors(int32(v)) {
			mean += own[u] / float64(g.InDegree(int32(v)))
		}
		targets[2*v], targets[2*v+1] = float32(300+50*(own[v]+noise*r.NormFloat64())), float32(2*mean)
	}
	ds := &gnb.Dataset{
		Graph: g, Features: &dataset.Matrix{Rows: nodes, Cols: cols, F32: x}, Targets: &dataset.Matrix{Rows: nodes, Cols: 2, F32: targets},
		Splits: map[string][]int32{},
	}
	for v := range int32(nodes) {
		split := []string{"train", "train", "train", "val", "test"}[v%5]
		ds.Splits[split] = append(ds.Splits[split], v)
	}
	ds.Meta.Name, ds.Meta.TargetNames = "planted", []string{"price", "mean weight"}
	return ds
}

// options are those of a small run.
func options(t *testing.T) (o numbers.Options) {
	o.Quiet, o.Threads, o.Workers, o.Hidden, o.Batch, o.Epochs, o.Seed, o.RunDir = true, 1, 1, 32, 64, 30, 3, t.TempDir()
	return o
}

func train(t *testing.T, ds *gnb.Dataset, o numbers.Options) *runs.Run {
	t.Helper()
	run, err := numbers.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// The targets of a linear function of the features are recovered to their noise, with and without the graph, by each loss.
func TestPlantedTargets(t *testing.T) {
	const noise = 0.3
	ds := planted(3000, noise)
	for name, set := range map[string]func(o *numbers.Options){
		"sage":      func(o *numbers.Options) { o.Model = gnb.SAGE },
		"mlp":       func(o *numbers.Options) { o.Model, o.Loss = gnb.MLP, "huber" },
		"absolute":  func(o *numbers.Options) { o.Model, o.Loss = gnb.MLP, "absolute" },
		"quantiles": func(o *numbers.Options) { o.Model, o.Loss, o.Quantiles = gnb.MLP, "quantile", []float64{0.1, 0.5, 0.9} },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Targets = []string{"price"}
			set(&o)
			run := train(t, ds, o)
			// 50·noise is 15; the deviation of price is 50·√(2.875+0.09) = 86.
			if rmse, mean := run.Value("test_rmse"), run.Value("mean_rmse"); rmse > 50*noise*1.25 || rmse < 50*noise*0.8 || mean < 75 || mean > 100 {
				t.Errorf("the RMSE is %v with a noise of 15, and %v by the mean", rmse, mean)
			}
			if r2 := run.Value("test_r2"); r2 < 0.95 {
				t.Errorf("R² is %v", r2)
			}
			if c := run.Value("test_coverage"); name == "quantiles" && (c < 0.7 || c > 0.9) {
				t.Errorf("%v of the targets are between the quantiles 0.1 and 0.9, want about 0.8", c)
			}
		})
	}
}

// A target that is a function of the neighbours is learned with the graph and not without; a run of both targets measures
// each by its name.
func TestGraphAdds(t *testing.T) {
	ds := planted(3000, 0.1)
	o := options(t)
	both := train(t, ds, o)
	if r2 := both.Value("test_r2"); r2 < 0.85 {
		t.Errorf("R² of both targets is %v", r2)
	}
	if price, weight, mean := both.Value("test_mae_price"), both.Value("test_mae_mean_weight"), both.Value("test_mae"); math.Abs((price+weight)/2-mean) > 1e-9 || weight > 0.6 {
		t.Errorf("the MAE are %v and %v, and their mean %v", price, weight, mean)
	}
	o = options(t)
	o.Model, o.Targets = gnb.MLP, []string{"1"}
	if r2 := train(t, ds, o).Value("test_r2"); r2 > 0.1 {
		t.Errorf("without the graph, R² of the mean over neighbours is %v", r2)
	}
}

// What a run predicts has the unit of the targets, is bounded if asked, has the nodes' ids, and does not depend on workers.
func TestPredict(t *testing.T) {
	ds := planted(1000, 0.1)
	o := options(t)
	o.Bounded, o.Loss, o.Quantiles, o.Epochs = true, "quantile", []float64{0.25, 0.5}, 5
	run := train(t, ds, o)
	p, err := numbers.Predict(t.Context(), run, ds, gnb.InferOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Names, ","); got != "price_q0.25,price_q0.5,mean weight_q0.25,mean weight_q0.5" || p.Rows.Rows != 1000 {
		t.Fatalf("the columns are %s of %d rows", got, p.Rows.Rows)
	}
	had, err := numbers.OptionsOf(run)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for v := range p.Rows.Rows {
		row := p.Rows.Row(v)
		if float64(row[0]) < float64(float32(had.Scale.Low[0])) || float64(row[1]) > float64(float32(had.Scale.High[0])) {
			t.Fatalf("node %d has the prediction %v outside the bounds %v to %v", v, row[:2], had.Scale.Low[0], had.Scale.High[0])
		}
		sum += float64(row[1]) / 1000
	}
	if sum < 280 || sum > 320 {
		t.Errorf("the mean prediction of price is %v, want about 300", sum)
	}
	dir := t.TempDir()
	for _, name := range []string{"p.npy", "p.csv"} {
		if _, err := numbers.Infer(t.Context(), run, ds, filepath.Join(dir, name), gnb.InferOptions{Quiet: true, Workers: 3}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := dataset.ReadNPY(filepath.Join(dir, "p.npy"))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range p.Rows.F32 {
		if math.Float32bits(x) != math.Float32bits(again.F32[i]) {
			t.Fatalf("with three workers element %d is %v instead of %v", i, again.F32[i], x)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "p.csv"))
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 1002 || lines[0] != "id,price_q0.25,price_q0.5,mean weight_q0.25,mean weight_q0.5" || !strings.HasPrefix(lines[1], "0,") {
		t.Errorf("%d lines, first %q, %v", len(lines), lines[:2], err)
	}
}

// Unknown targets are skipped: a run with them has the losses of one whose split leaves these nodes out of the metrics, and
// says how many there are.
func TestUnknownTargets(t *testing.T) {
	ds := planted(1000, 0.1)
	for _, v := range ds.Splits["val"][:50] {
		ds.Targets.F32[2*v], ds.Targets.F32[2*v+1] = nan, nan
	}
	for _, v := range ds.Splits["train"][:100] {
		ds.Targets.F32[2*v+1] = nan
	}
	var said []string
	o := options(t)
	o.Epochs = 2
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindPrint {
			said = append(said, e.Text)
		}
	}
	run := train(t, ds, o)
	if got := strings.Join(said, "\n"); !strings.Contains(got, "50 nodes of the split val have no known target and are skipped") || !strings.Contains(got, "the training mean as the prediction for each node of the split test has the MAE ") || strings.Contains(got, "split train") {
		t.Errorf("it said %q", got)
	}
	less := planted(1000, 0.1)
	less.Targets, less.Splits["val"] = ds.Targets, ds.Splits["val"][50:]
	o = options(t)
	o.Epochs = 2
	if other := train(t, less, o); other.Value("val_mae") != run.Value("val_mae") || other.Value("val_mae") == 0 {
		t.Errorf("the MAE is %v, and %v without the unknown nodes", run.Value("val_mae"), other.Value("val_mae"))
	}
}

// Bad input is one sentence that names what is wrong.
func TestBadInput(t *testing.T) {
	inf := float32(math.Inf(1))
	all := func(ds *gnb.Dataset, split string, x float32) {
		for _, v := range ds.Splits[split] {
			ds.Targets.F32[2*v], ds.Targets.F32[2*v+1] = x, x
		}
	}
	for name, c := range map[string]struct {
		set  func(ds *gnb.Dataset, o *numbers.Options)
		want string
	}{
		"equal":           {func(ds *gnb.Dataset, _ *numbers.Options) { all(ds, "train", 4) }, `target "price" is 4 for all 60 training nodes`},
		"unknown":         {func(ds *gnb.Dataset, _ *numbers.Options) { all(ds, "train", nan) }, `target "price" is unknown (NaN) for all 60 training nodes`},
		"infinite":        {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Targets.F32[2*ds.Splits["train"][3]] = inf }, "is +Inf"},
		"infinite in val": {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Targets.F32[2*ds.Splits["val"][3]] = inf }, `of the split "val" is +Inf`},
		"unknown in val":  {func(ds *gnb.Dataset, _ *numbers.Options) { all(ds, "val", nan) }, `split "val" cannot choose the best epoch`},
		"equal in val":    {func(ds *gnb.Dataset, o *numbers.Options) { all(ds, "val", 1); o.Metric = "r2" }, "its known targets are all equal"},
		"a strange node":  {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Splits["val"][0] = 1000 }, "node 1000"},
		"no targets":      {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Targets, ds.Meta.TargetNames = nil, nil }, "have no numbers to predict"},
		"classes": {func(ds *gnb.Dataset, _ *numbers.Options) {
			ds.Targets, ds.Meta.TargetNames, ds.Labels, ds.Meta.NumClasses = nil, nil, make([]int32, 100), 2
		}, "gnb.Train (--task nodes) predicts classes"},
		"no such target": {func(_ *gnb.Dataset, o *numbers.Options) { o.Targets = []string{"prize"} }, `has "prize", and the targets of planted are price and mean weight`},
		"twice":          {func(_ *gnb.Dataset, o *numbers.Options) { o.Targets = []string{"price", "0"} }, `has "0" twice`},
		"metric":         {func(_ *gnb.Dataset, o *numbers.Options) { o.Metric = "auc" }, "mae, rmse, r2 and nmae"},
		"loss":           {func(_ *gnb.Dataset, o *numbers.Options) { o.Loss = "cubic" }, "squared, absolute, huber or quantile"},
		"quantiles":      {func(_ *gnb.Dataset, o *numbers.Options) { o.Quantiles = []float64{0.5} }, "only the loss quantile"},
		"sampled":        {func(_ *gnb.Dataset, o *numbers.Options) { o.Eval = "sampled" }, "all neighbours"},
		"no train":       {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Splits["train"] = nil }, "nothing to train on"},
	} {
		t.Run(name, func(t *testing.T) {
			ds, o := planted(100, 0.1), options(t)
			c.set(ds, &o)
			_, err := numbers.Train(t.Context(), ds, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want one line with %q", err, c.want)
			}
		})
	}
	run, err := numbers.Train(t.Context(), planted(100, 0.1), func() numbers.Options { o := options(t); o.LR, o.Epochs = 1e30, 3; return o }())
	if !errors.Is(err, gnb.ErrNotFinite) {
		t.Errorf("a rate of 1e30 ends with %v, %v", run, err)
	}
}
