package report_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// The runs of examples go to a folder of their own.
func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

// graph returns a graph of n nodes with the given edges, source and destination in turn.
func graph(t *testing.T, n int, ends ...int32) *graphops.Graph {
	t.Helper()
	var src, dst []int32
	for i := 0; i < len(ends); i += 2 {
		src, dst = append(src, ends[i]), append(dst, ends[i+1])
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// small is a dataset of seven nodes in two classes and predictions for them, by hand:
//
//	node 0 (a): no in-neighbours                          p(a) = 0.9
//	node 1 (a): from 0 (a), 3 (b), 6 (unknown)            p(b) = 0.8, wrong
//	node 2 (a): from 0 (a), 1 (a)                         p(a) = 0.6
//	node 3 (b): from itself, 4 (b)                        p(b) = 0.7
//	node 4 (b): from 0 (a)                                p(a) = 0.95, wrong
//	node 5 (b): not in the split
//	node 6: no label
func small(t *testing.T) (*dataset.Dataset, *dataset.Matrix) {
	ds := &dataset.Dataset{
		Graph:  graph(t, 7, 0, 1, 3, 1, 6, 1, 0, 2, 1, 2, 3, 3, 4, 3, 0, 4),
		Labels: []int32{0, 0, 0, 1, 1, 1, -1},
		Splits: map[string][]int32{"train": {5}, "test": {0, 1, 2, 3, 4, 6}},
		Meta:   dataset.Metadata{Name: "small", NumClasses: 2, ClassNames: []string{"a", "b"}},
	}
	ds.Describe()
	logits := &dataset.Matrix{Rows: 7, Cols: 2}
	for _, p := range []float64{.9, .2, .6, .3, .95, .5, .5} {
		logits.F32 = append(logits.F32, float32(math.Log(p)), float32(math.Log(1-p)))
	}
	return ds, logits
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestByHand(t *testing.T) {
	ds, logits := small(t)
	r, err := report.New(ds, logits, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 5 || r.Skipped != 1 || r.Split != "test" || !near(r.Accuracy, .6) {
		t.Errorf("%d nodes, %d skipped, split %s, accuracy %v", r.Nodes, r.Skipped, r.Split, r.Accuracy)
	}
	loss := -(math.Log(.9) + math.Log(.2) + math.Log(.6) + math.Log(.7) + math.Log(.05)) / 5
	if !near(r.Loss, loss) {
		t.Errorf("loss %v, want %v", r.Loss, loss)
	}
	if got := r.Confusion; got[0][0] != 2 || got[0][1] != 1 || got[1][0] != 1 || got[1][1] != 1 {
		t.Errorf("confusion %v", got)
	}
	if a := r.Classes[0]; a.Name != "a" || a.Nodes != 3 || a.Predicted != 3 || !near(a.Precision, 2./3) || !near(a.Recall, 2./3) || !near(a.F1, 2./3) {
		t.Errorf("class a: %+v", a)
	}
	degrees := []report.Group{{"0", 1, 1}, {"1", 1, 0}, {"2–3", 3, 2. / 3}}
	if !slices.EqualFunc(r.ByDegree, degrees, sameGroup) {
		t.Errorf("by degree %v, want %v", r.ByDegree, degrees)
	}
	// Node 0 has no neighbours. Of those of 1, one of two is of its class; 3's edge from itself does not count.
	kin := []report.Group{{"0–20 %", 1, 0}, {"40–60 %", 1, 0}, {"80–100 %", 2, 1}}
	if !slices.EqualFunc(r.ByHomophily, kin, sameGroup) {
		t.Errorf("by neighbourhood %v, want %v", r.ByHomophily, kin)
	}
	if m := r.Mistakes; len(m) != 2 || m[0].Node != 4 || m[0].Class != "b" || m[0].Predicted != "a" || !near(m[0].Probability, .95) || m[0].Degree != 1 || m[0].SameClass != 0 || m[0].Labelled != 1 || m[1].Node != 1 || m[1].SameClass != 1 || m[1].Labelled != 2 {
		t.Errorf("mistakes %+v", r.Mistakes)
	}
	predictions := 0
	for _, b := range r.Calibration {
		predictions += b.Predictions
		if b.Predictions > 0 && (b.Confidence <= b.Low || b.Confidence > b.High) {
			t.Errorf("bin %+v", b)
		}
	}
	if predictions != 5 {
		t.Errorf("the bins hold %d predictions", predictions)
	}
	for _, want := range []string{"small: 5 nodes of the split test", "accuracy 0.6000", "1 node without a label", "most confident mistakes", "1 of 2", "accuracy by neighbourhood"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, r)
		}
	}
	for _, f := range r.Figures() {
		if _, err := f.PNG(); err != nil {
			t.Error(err)
		}
	}
}

func sameGroup(a, b report.Group) bool {
	return a.Name == b.Name && a.Nodes == b.Nodes && near(a.Accuracy, b.Accuracy)
}

// The measures equal scikit-learn's; testdata/sklearn_report.py wrote them.
func TestAgreesWithScikitLearn(t *testing.T) {
	type measures struct {
		Logits            []float32
		Labels            []int32
		Confusion         [][]int
		Precision, Recall []float64
		F1, AUC           []float64
		MacroF1           float64 `json:"macro_f1"`
		Accuracy, Loss    float64
		ECE               float64
	}
	var want struct {
		Nodes, Classes int
		One, Several   measures
	}
	data, err := os.ReadFile("testdata/sklearn.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for _, several := range []bool{false, true} {
		m := want.One
		ds := &dataset.Dataset{Graph: graph(t, want.Nodes), Labels: m.Labels, Meta: dataset.Metadata{Name: "x", NumClasses: want.Classes}}
		if several {
			m = want.Several
			ds.Labels, ds.MultiLabels = nil, &dataset.Multi{Rows: want.Nodes, Cols: want.Classes}
			for _, y := range m.Labels {
				ds.MultiLabels.Data = append(ds.MultiLabels.Data, int8(y))
			}
		}
		ds.Describe()
		r, err := report.New(ds, &dataset.Matrix{Rows: want.Nodes, Cols: want.Classes, F32: m.Logits}, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Nodes != want.Nodes || r.Split != "all" || !near(r.Accuracy, m.Accuracy) || !near(r.MacroF1, m.MacroF1) || !near(r.Loss, m.Loss) {
			t.Errorf("several %v: %d nodes of %s, accuracy %v, macro F1 %v, loss %v; want %v, %v, %v", several, r.Nodes, r.Split, r.Accuracy, r.MacroF1, r.Loss, m.Accuracy, m.MacroF1, m.Loss)
		}
		if !several && !near(r.CalibrationError, m.ECE) {
			t.Errorf("calibration error %v, want %v", r.CalibrationError, m.ECE)
		}
		for i, c := range r.Classes {
			if !near(c.Precision, m.Precision[i]) || !near(c.Recall, m.Recall[i]) || !near(c.F1, m.F1[i]) {
				t.Errorf("several %v, class %d: %+v; want %v, %v, %v", several, i, c, m.Precision[i], m.Recall[i], m.F1[i])
			}
			if several && !near(c.AUC, m.AUC[i]) {
				t.Errorf("class %d: AUC %v, want %v", i, c.AUC, m.AUC[i])
			}
			if !several && !slices.Equal(r.Confusion[i], m.Confusion[i]) {
				t.Errorf("row %d of the confusion matrix is %v, want %v", i, r.Confusion[i], m.Confusion[i])
			}
		}
		if several && (r.Confusion != nil || r.ByHomophily != nil) {
			t.Error("there is a confusion matrix of several classes a node")
		}
		if text := r.String(); several != strings.Contains(text, "AUC") {
			t.Errorf("several %v:\n%s", several, text)
		}
		b, err := json.Marshal(r)
		if err != nil || several != strings.Contains(string(b), `"auc"`) || !strings.Contains(string(b), `"precision"`) {
			t.Errorf("several %v: JSON %.300s, error %v", several, b, err)
		}
	}
}

func TestWriteCSV(t *testing.T) {
	ds, logits := small(t)
	ids := []string{"n0", "n1", "n2", "n3", "n,4", "n5", "n6"}
	r, err := report.New(ds, logits, report.Options{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	if r.Mistakes[0].ID != "n,4" {
		t.Errorf("the first mistake is %+v", r.Mistakes[0])
	}
	path := filepath.Join(t.TempDir(), "p.csv")
	if err := r.WriteCSV(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 8 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	for i, want := range map[int]string{0: "node,id,label,predicted,p:a,p:b", 5: "4;n,4;b;a;0.95;0.05", 7: "6;n6;;a;0.5;0.5"} {
		sep := ";"
		if i == 0 {
			sep = ","
		}
		if got := strings.Join(rows[i], sep); got != want {
			t.Errorf("row %d is %s, want %s", i, got, want)
		}
	}
}

// The columns for tables.Write have what the CSV file has.
func TestColumns(t *testing.T) {
	ds, logits := small(t)
	for _, ids := range [][]string{nil, {"n0", "n1", "n2", "n3", "n,4", "n5", "n6"}} {
		r, err := report.New(ds, logits, report.Options{IDs: ids})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "p.csv")
		if err := r.WriteCSV(path); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := csv.NewReader(strings.NewReader(string(raw))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		names, batches := r.Columns()
		got := [][]string{names}
		for batch := range batches {
			for i := range batch[0].([]int64) {
				var row []string
				for _, column := range batch {
					switch x := column.(type) {
					case []int64:
						row = append(row, strconv.FormatInt(x[i], 10))
					case []string:
						row = append(row, x[i])
					case []float32:
						row = append(row, strconv.FormatFloat(float64(x[i]), 'g', 6, 32))
					}
				}
				got = append(got, row)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the columns are %v, and the CSV file has %v", got, want)
		}
		for range batches { // a consumer may stop
			break
		}
	}
}

func TestMistakesOfCallers(t *testing.T) {
	for _, c := range []struct {
		name, want string
		edit       func(ds *dataset.Dataset, m *dataset.Matrix, o *report.Options)
	}{
		{"rows", "there are predictions for 6 nodes and small has 7", func(_ *dataset.Dataset, m *dataset.Matrix, _ *report.Options) {
			m.Rows, m.F32 = 6, m.F32[:12]
		}},
		{"columns", "predictions have 1 column and small has 2 classes", func(_ *dataset.Dataset, m *dataset.Matrix, _ *report.Options) {
			m.Cols, m.F32 = 1, m.F32[:7]
		}},
		{"not finite", "the output for node 2 is not finite in column 1", func(_ *dataset.Dataset, m *dataset.Matrix, _ *report.Options) { m.F32[5] = float32(math.NaN()) }},
		{"split", `report: `, func(_ *dataset.Dataset, _ *dataset.Matrix, o *report.Options) { o.Split = "vla" }},
		{"no labels", `no node of the split "test" of small has a label`, func(ds *dataset.Dataset, _ *dataset.Matrix, _ *report.Options) {
			ds.Splits["test"] = []int32{6}
		}},
		{"unlabelled", "small has no labels", func(ds *dataset.Dataset, _ *dataset.Matrix, _ *report.Options) { ds.Labels = nil }},
		{"ids", "Options.IDs has 1 name and small has 7 nodes", func(_ *dataset.Dataset, _ *dataset.Matrix, o *report.Options) { o.IDs = []string{"x"} }},
		{"mistakes", "Options.Mistakes is -2", func(_ *dataset.Dataset, _ *dataset.Matrix, o *report.Options) { o.Mistakes = -2 }},
	} {
		ds, logits := small(t)
		var o report.Options
		c.edit(ds, logits, &o)
		if _, err := report.New(ds, logits, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := report.New(nil, nil, report.Options{}); err == nil {
		t.Error("no error without a dataset")
	}
	if _, err := report.Of(context.Background(), nil, nil, report.Options{}); err == nil || !strings.Contains(err.Error(), "needs a run") {
		t.Errorf("no run: %v", err)
	}
}

// A real run: the report has the accuracy that the run has.
func TestOf(t *testing.T) {
	ctx := context.Background()
	ds, err := gnb.Load(ctx, "karate")
	if err != nil {
		t.Fatal(err)
	}
	run, err := gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 20}, LaunchOptions: gnb.LaunchOptions{RunDir: t.TempDir() + "/run", Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Of(ctx, run, ds, report.Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if !near(r.Accuracy, run.TestAccuracy()) || r.Nodes != 20 || r.Model != "sage" {
		t.Errorf("accuracy %v of %d nodes by %s; the run has %v", r.Accuracy, r.Nodes, r.Model, run.TestAccuracy())
	}
}
