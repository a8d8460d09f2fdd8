package gnb_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
)

// A run is measured by the metric of its options: it chooses the best epoch, names the results, does not depend on the
// number of workers, and stays the run's when it resumes.
func TestTrainByMetric(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	for _, c := range []struct{ metric, spec string }{
		{"macro_f1", "planted?nodes=400&classes=4&seed=3"},
		{"balanced_accuracy", "planted?nodes=400&classes=4&seed=3"},
		{"mcc", "planted?nodes=400&classes=4&seed=3"},
		{"micro_f1", "planted?nodes=400&classes=4&seed=3"},
		{"auc", "planted?nodes=400&classes=2&seed=3"},
		{"ap", "planted?nodes=400&classes=2&seed=3"},
	} {
		t.Run(c.metric, func(t *testing.T) {
			ds := gnb.Must(gnb.Load(t.Context(), c.spec))
			defer ds.Close()
			var first string
			for workers := 1; workers <= 2; workers++ {
				o := gnb.TrainOptions{EvaluationOptions: gnb.EvaluationOptions{Metric: c.metric}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3}, LaunchOptions: gnb.LaunchOptions{Workers: workers, VirtualRanks: 2 / workers, Device: "cpu", Quiet: true, Seed: 4, RunDir: t.TempDir() + "/run"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
				run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
				if err != nil {
					t.Fatal(err)
				}
				val, test := run.Value("val_"+c.metric), run.Value("test_"+c.metric)
				if got := fmt.Sprint(val, test, run.Value("best_epoch")); first == "" {
					first = got
				} else if got != first {
					t.Errorf("%d workers have %s, one has %s", workers, got, first)
				}
				if !(val > 0 && val <= 1 && test > 0) || c.metric != "accuracy" && run.Value("val_accuracy") == run.Value("val_accuracy") {
					t.Errorf("val %v, test %v, val_accuracy %v", val, test, run.Value("val_accuracy"))
				}
				if !strings.Contains(run.String(), "val "+strings.ReplaceAll(c.metric, "_", " ")) {
					t.Errorf("the run is described as %s", run)
				}
				if _, had, err := gnb.OptionsOf(run); err != nil || had.Metric != c.metric {
					t.Errorf("the options of the run have Metric %q, %v", had.Metric, err)
				}
				// The answers of the best network, measured by hand.
				if c.metric == "micro_f1" {
					answers := gnb.Must(gnb.Infer(t.Context(), run, ds, t.TempDir()+"/out.npy", gnb.InferOptions{Quiet: true}))
					logits := gnb.Must(answers.Logits())
					ids, _ := ds.Split("test")
					right := 0
					for _, v := range ids {
						if nn.Argmax(logits.Row(int(v))) == int(ds.Labels[v]) {
							right++
						}
					}
					if want := float64(right) / float64(len(ids)); test != want {
						t.Errorf("test micro-F1 %v, want the accuracy %v", test, want)
					}
				}
			}
		})
	}
	ds := gnb.Must(gnb.Load(t.Context(), "planted?nodes=100&classes=3"))
	defer ds.Close()
	t.Run("declared", func(t *testing.T) {
		var first string
		for workers := 1; workers <= 2; workers++ {
			run, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
				EvaluationOptions: gnb.EvaluationOptions{Metric: misses}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 4},
				LaunchOptions: gnb.LaunchOptions{Workers: workers, VirtualRanks: 2 / workers, Quiet: true, Seed: 4, RunDir: t.TempDir() + "/run"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(run.Value("val_misses"), run.Value("test_misses"), run.Value("best_epoch")); first == "" {
				first = got
			} else if got != first {
				t.Errorf("%d workers have %s, one has %s", workers, got, first)
			}
			lowest := math.Inf(1)
			_ = run.Events(func(e runs.Event) {
				for _, v := range e.Values {
					if v.Name == "val_misses" && e.Kind == runs.KindMetrics {
						lowest = min(lowest, v.Value)
					}
				}
			})
			if run.Value("val_misses") != lowest || run.Result.Metric == nil || !run.Result.Metric.Lower || run.Result.Metric.Title != "wrong nodes" {
				t.Errorf("the best epoch has %v misses, and the lowest are %v; metric %+v", run.Value("val_misses"), lowest, run.Result.Metric)
			}
			again, err := runs.Open(run.Dir)
			if err != nil || again.Result.Metric == nil || !strings.Contains(again.String(), fmt.Sprintf("val misses %.0f wrong", lowest)) {
				t.Errorf("the run is described as %v, %v", again, err)
			}
			if table := gnb.Must(runs.Table{again}.Text()); !strings.Contains(table, "val_misses") {
				t.Errorf("the table has no column of the metric:\n%s", table)
			}
		}
	})
	if s := (gnb.SplitMetric{Split: "val", Metric: metrics.AccuracyMetric, Score: math.NaN()}).String(); s != "val accuracy NaN (0 of 0)" {
		t.Errorf("a split without labels is described as %q", s)
	}
	for metric, want := range map[string]string{"loss": "another name", "auc": "two classes", "ap": "average precision", "rmse": `Metric is "rmse"`} {
		if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{EvaluationOptions: gnb.EvaluationOptions{Metric: metric}, LaunchOptions: gnb.LaunchOptions{Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", metric, err)
		}
	}
}

// misses counts the nodes whose answer is wrong.
var misses = gnb.DeclareMetric(gnb.Metric{Name: "misses", Title: "wrong nodes", Lower: true, Format: "%.0f wrong", New: func(int) metrics.Tally { return new(missed) }})

var _ = gnb.DeclareMetric(gnb.Metric{Name: "loss", New: func(int) metrics.Tally { return new(missed) }}) // a name that it cannot have

type missed [2]int64

func (m *missed) Add(row []float32, known metrics.Answer) {
	m[1]++
	if nn.Argmax(row) != int(known.Class) {
		m[0]++
	}
}

func (m *missed) Value() (float64, int64) { return float64(m[0]), m[1] }

func (m *missed) Encode() []byte { return gnb.Must(json.Marshal(*m)) }

func (m *missed) Merge(b []byte) error {
	var n missed
	err := json.Unmarshal(b, &n)
	m[0], m[1] = m[0]+n[0], m[1]+n[1]
	return err
}

// A run on a view of a dataset is measured by the metric of the view: from memory, from a directory, and without the edges of
// weight 0.
func TestMetricOfAView(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	made := load(t, "planted?nodes=400&classes=4&seed=3")
	for name, ds := range map[string]*gnb.Dataset{
		"memory": made, "directory": stored(t, made, dataset.WriteOptions{}), "weights of 0": weighed(t, 400, true),
	} {
		view, err := ds.WithMetric(dataset.MetricMacroF1)
		if err != nil {
			t.Fatal(err)
		}
		o := small()
		for workers := 1; workers <= 2; workers++ {
			o.Workers = workers
			run, err := gnb.Train(t.Context(), view, gnb.SAGE, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if x := run.Value("val_macro_f1"); !(x >= 0) || run.Config.Metric != dataset.MetricMacroF1 {
				t.Errorf("%s, %d workers: the run has the metric %q and the values %v", name, workers, run.Config.Metric, run.Result.Values)
			}
			again := o
			again.Resume = run.Dir
			if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, again); err == nil || !strings.Contains(err.Error(), "the metric of nodes was macro_f1") {
				t.Errorf("%s: resumed with the dataset's own metric: %v", name, err)
			}
		}
	}
}
