package report_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// priced is a star of six nodes, 1 to 5 into 0, and predictions of two targets by hand. The second target of node 4 is unknown.
func priced(t *testing.T) (*gnb.Dataset, *numbers.Predictions) {
	nan := float32(math.NaN())
	ds := &gnb.Dataset{
		Graph:   graph(t, 6, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0),
		Targets: &dataset.Matrix{Rows: 6, Cols: 2, F32: []float32{10, 1, 20, 1, 30, 1, 40, 1, 50, nan, 60, 2}},
		Splits:  map[string][]int32{"train": {1, 2}, "test": {0, 3, 4, 5}},
		Meta:    dataset.Metadata{Name: "priced", TargetNames: []string{"price", "stars"}},
	}
	ds.Describe()
	return ds, &numbers.Predictions{Names: []string{"price", "stars"}, IDs: []string{"a", "b", "c", "d", "e", "f"}, Rows: &dataset.Matrix{Rows: 6, Cols: 2, F32: []float32{12, 1, 20, 1, 30, 1, 37, 1, 50, 1, 66, 1}}}
}

func TestNumbersByHand(t *testing.T) {
	ds, p := priced(t)
	r, err := report.NewNumbers(ds, p, nil, report.Options{Mistakes: 2})
	if err != nil {
		t.Fatal(err)
	}
	price, stars := r.Targets[0], r.Targets[1]
	// Errors 2, -3, 0, 6 of the targets 10, 40, 50, 60: Σ(y-ȳ)² = 1400.
	if price.Nodes != 4 || !near(price.MAE, 11./4) || !near(price.RMSE, 3.5) || !near(*price.R2, 1-49./1400) || !near(*price.NMAE, 2.75/math.Sqrt(350)) || !near(price.Bias, 5./4) {
		t.Errorf("the errors are %+v of %d nodes", price.Errors, price.Nodes)
	}
	// The training mean is 25: 15, 15, 25, 35.
	if !near(*price.MeanMAE, 22.5) || len(price.BySplit) != 2 || price.BySplit[0].Split != "train" || price.BySplit[0].MAE != 0 || price.BySplit[0].Nodes != 2 {
		t.Errorf("the mean's MAE is %v, and by split %+v", price.MeanMAE, price.BySplit)
	}
	if len(price.ByRange) != 4 || price.ByRange[1].Name != "40" || price.ByRange[1].MAE != 3 || price.ByRange[1].Bias != -3 {
		t.Errorf("by range %+v", price.ByRange)
	}
	if len(price.ByDegree) != 2 || price.ByDegree[0].Name != "0" || price.ByDegree[0].Nodes != 3 || price.ByDegree[0].MAE != 3 || price.ByDegree[1].Name != "4–7" || price.ByDegree[1].Bias != 2 {
		t.Errorf("by degree %+v", price.ByDegree)
	}
	if len(price.Worst) != 2 || price.Worst[0].ID != "f" || price.Worst[0].Error != 6 || price.Worst[1].ID != "d" || price.Worst[1].Predicted != 37 {
		t.Errorf("the worst are %+v", price.Worst)
	}
	if stars.Nodes != 3 || stars.Skipped != 1 || !near(stars.MAE, 1./3) || len(stars.ByRange) != 2 || stars.ByRange[0].Nodes != 2 || stars.ByRange[0].Name != "1" {
		t.Errorf("of stars %+v", stars)
	}
	text := r.String()
	for _, want := range []string{"price: MAE 2.75, RMSE 3.5, R² 0.9650, bias 1.25; MAE 22.5 by the training mean; 4 nodes\n", "1 more without a known target", "largest errors of price", "errors by degree of stars"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if b, err := json.Marshal(r); err != nil || !strings.Contains(string(b), `"r2":0.965`) {
		t.Errorf("%s, %v", b, err)
	}
	for _, f := range r.Figures() {
		if b, err := f.PNG(); err != nil || len(b) < 1000 {
			t.Errorf("a picture of %d bytes, %v", len(b), err)
		}
	}
}

// The share of targets below each quantile is counted, and the middle one is the prediction.
func TestQuantilesByHand(t *testing.T) {
	ds, p := priced(t)
	ds.Targets = &dataset.Matrix{Rows: 6, Cols: 1, F32: []float32{10, 20, 30, 40, 50, 60}}
	ds.Meta.TargetNames, ds.Meta.TargetDim = nil, 1
	p.Names = []string{"target_0_q0.1", "target_0_q0.5"}
	p.Rows.F32 = []float32{5, 10, 0, 0, 0, 0, 30, 45, 60, 70, 10, 30}
	r, err := report.NewNumbers(ds, p, []float64{0.1, 0.5}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Targets[0]; e.Name != "target_0" || len(e.Quantiles) != 2 || e.Quantiles[0].Below != 0.25 || e.Quantiles[1].Below != 0.75 || !near(e.MAE, (0+5+20+30)/4.) || !strings.Contains(r.String(), "share below") {
		t.Errorf("%+v", e)
	}
}

func TestNumbersRefused(t *testing.T) {
	nan := float32(math.NaN())
	for want, set := range map[string]func(ds *gnb.Dataset, p *numbers.Predictions, o *report.Options){
		"have no targets":            func(ds *gnb.Dataset, _ *numbers.Predictions, _ *report.Options) { ds.Targets = nil },
		"different graphs":           func(_ *gnb.Dataset, p *numbers.Predictions, _ *report.Options) { p.Rows.Rows = 5 },
		"no target of priced":        func(_ *gnb.Dataset, p *numbers.Predictions, _ *report.Options) { p.Names[0] = "cost" },
		"not finite in column 0":     func(_ *gnb.Dataset, p *numbers.Predictions, _ *report.Options) { p.Rows.F32[6] = nan },
		"no such split":              func(_ *gnb.Dataset, _ *numbers.Predictions, o *report.Options) { o.Split = "none" },
		`has a known target "stars"`: func(ds *gnb.Dataset, _ *numbers.Predictions, o *report.Options) { ds.Splits["test"] = []int32{4} },
	} {
		ds, p := priced(t)
		o := report.Options{}
		set(ds, p, &o)
		if _, err := report.NewNumbers(ds, p, nil, o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// A run of numbers has this report, and the one of classes refuses it.
func TestReportOfNumbersRun(t *testing.T) {
	ds := gnb.Must(gnb.Load(t.Context(), "planted?nodes=500&features=8&classes=4"))
	ds.Labels, ds.Meta.NumClasses = nil, 0
	ds.Targets = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1}
	for v := range ds.Nodes() {
		ds.Targets.F32 = append(ds.Targets.F32, 100+ds.Features.Row(v)[0])
	}
	run, err := numbers.Train(t.Context(), ds, numbers.Options{LossOptions: numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.1, 0.5, 0.9}}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 10, Batch: 64}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir() + "/run"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.OfNumbers(t.Context(), run, ds, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Targets[0]; !near(e.MAE, run.Value("test_mae")) || !near(*e.R2, run.Value("test_r2")) || math.Abs(*e.MeanMAE-run.Value("mean_mae")) > 1e-4 || r.Model != "sage" || len(e.Quantiles) != 3 {
		t.Errorf("the report has MAE %v and R² %v, the run %v and %v; by the mean %v and %v", e.MAE, e.R2, run.Value("test_mae"), run.Value("test_r2"), e.MeanMAE, run.Value("mean_mae"))
	}
	if _, err := report.Of(t.Context(), run, ds, report.Options{}); err == nil || !strings.Contains(err.Error(), "take report.OfNumbers") {
		t.Errorf("a report of classes: %v", err)
	}
	if _, err := gnb.Infer(t.Context(), run, ds, t.TempDir()+"/x.npy", gnb.InferOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), "take numbers.Infer") {
		t.Errorf("gnb.Infer: %v", err)
	}
}

// The report of a run of numbers of edges has the errors that the run measured.
func TestReportOfEdgesRun(t *testing.T) {
	ds := gnb.Must(gnb.Load(t.Context(), "ratings?users=100&items=64&degree=4"))
	run, err := numbers.Train(t.Context(), ds, numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 3, Batch: 64}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir() + "/run"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.OfNumbers(t.Context(), run, ds, report.Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Targets[0]; r.Of != "edges" || e.Nodes != 40 || !near(e.MAE, run.Value("test_mae")) || math.Abs(*e.MeanMAE-run.Value("mean_mae")) > 1e-4 || !strings.Contains(e.Worst[0].ID, " → ") {
		t.Errorf("the report has MAE %v of %d edges, the run %v", e.MAE, e.Nodes, run.Value("test_mae"))
	}
}

// A report of numbers of edges is over the edges of the split, whose degrees are those of both ends.
func TestNumbersOfEdges(t *testing.T) {
	ds := &gnb.Dataset{Graph: graph(t, 4, 1, 0, 2, 0, 3, 0, 0, 1), Meta: dataset.Metadata{Name: "paid"}, Splits: map[string][]int32{}}
	if _, err := ds.SetEdgeTargets([]int64{0, 1, 2, 3}, &dataset.Matrix{Rows: 4, Cols: 1, F32: []float32{10, 20, 30, float32(math.NaN())}}, []string{"amount"}); err != nil {
		t.Fatal(err)
	}
	ds.EdgeAnswers.Splits = map[string][]int32{"train": {0}, "test": {1, 2, 3}}
	p := &numbers.Predictions{Names: []string{"amount"}, IDs: []string{"a", "b", "c", "d"}, At: []int64{0, 1, 2, 3}, Pairs: &numbers.Edges{Src: []int32{1, 2, 3, 0}, Dst: []int32{0, 0, 0, 1}}, Rows: &dataset.Matrix{Rows: 4, Cols: 1, F32: []float32{10, 22, 26, 1}}}
	r, err := report.NewNumbers(ds, p, nil, report.Options{Mistakes: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := r.Targets[0]
	if r.Of != "edges" || e.Nodes != 2 || e.Skipped != 1 || !near(e.MAE, 3) || len(e.Worst) != 1 || e.Worst[0].ID != "d → a" || e.Worst[0].Degree != 3 || len(e.ByDegree) != 1 || e.ByDegree[0].Name != "2–3" {
		t.Errorf("%+v", e)
	}
	if text := r.String(); !strings.Contains(text, "2 edges, 1 more without a known target") || !strings.Contains(text, "split  edges") || strings.Contains(text, "node") {
		t.Errorf("the report is\n%s", text)
	}
	p.At = nil
	if _, err := report.NewNumbers(ds, p, nil, report.Options{}); err == nil || !strings.Contains(err.Error(), "given pairs have no targets") {
		t.Errorf("given pairs: %v", err)
	}
}
