package gnb_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// several returns a planted dataset whose nodes have three labels each, some of them unknown:
// whether the class is even, whether it is below 2, and a label that no node has.
func several(t *testing.T) *gnb.Dataset {
	t.Helper()
	d := load(t, smallSet)
	m := &dataset.Multi{Rows: d.Nodes(), Cols: 3, Data: make([]int8, 3*d.Nodes())}
	for v, y := range d.Labels {
		if v%11 == 0 {
			copy(m.Row(v), []int8{-1, -1, -1})
			continue
		}
		if y%2 == 0 {
			m.Row(v)[0] = 1
		}
		if y < 2 {
			m.Row(v)[1] = 1
		}
	}
	c := *d
	c.Labels, c.MultiLabels, c.Meta.Metric, c.Meta.MultiLabel, c.Meta.NumClasses = nil, m, dataset.MetricMicroF1, true, 3
	return &c
}

type evalArgs struct{ Sampled, Loss bool }

// evalOnce evaluates a network with its initial weights and reports all results.
var evalOnce = gnb.Program("test.eval", func(w *gnb.Worker, a evalArgs) error {
	ds := w.Dataset()
	// GCN rather than SAGE, because SAGE transforms before it aggregates on the whole graph.
	net := gnb.GCN.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	how := gnb.FullNeighbors
	if a.Sampled {
		how = gnb.Sampled([]int{-1, -1}, 50, 0)
	}
	how.Loss = a.Loss
	m := w.Evaluate(net, how, "val", "test")
	for _, s := range m.Splits {
		w.Result(s.Split+"_correct", math.Round(s.Score*float64(s.Count)))
		w.Result(s.Split+"_count", float64(s.Count))
		w.Result(s.Split+"_f1", s.Score)
		w.Result(s.Split+"_value", s.Value())
		w.Result(s.Split+"_the_loss", s.Loss)
	}
	return nil
})

// Every metric and the loss are the same to the bit for any number of workers, with sampled
// neighbours and layer by layer.
func TestMetricsDoNotDependOnWorkers(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	auc, one := several(t), load(t, smallSet)
	auc.Meta.Metric = dataset.MetricROCAUC
	single := *one
	single.Meta.Metric = dataset.MetricMicroF1
	for name, ds := range map[string]*gnb.Dataset{"accuracy": one, "micro_f1": several(t), "auc": auc, "micro_f1 of one class": &single} {
		t.Run(name, func(t *testing.T) {
			var want string
			for i, o := range []struct {
				workers int
				sampled bool
			}{{1, false}, {2, false}, {3, true}, {4, false}} {
				run, err := gnb.Launch(t.Context(), evalOnce, evalArgs{o.sampled, true}, gnb.LaunchOptions{
					Data:    ds,
					Workers: o.workers,
					Threads: 1,
					Seed:    3,
					RunDir:  t.TempDir(),
					Resume:  gnb.Never,
					Quiet:   true,
				})
				if err != nil {
					t.Fatal(err)
				}
				raw, err := json.Marshal(run.Result.Values)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					want = string(raw)
				} else if string(raw) != want {
					t.Errorf("%d workers, sampled %v: %s, want %s", o.workers, o.sampled, raw, want)
				}
				kind, _, _ := strings.Cut(name, " ")
				if v := run.Value("val_" + kind); v != run.Value("val_value") || !(v >= 0 && v <= 1) {
					t.Errorf("%s is %v, but its value is %v", kind, v, run.Value("val_value"))
				}
				if l := run.Value("test_loss"); l != run.Value("test_the_loss") || !(l > 0.1 && l < 10) {
					t.Errorf("the losses are %v and %v", l, run.Value("test_the_loss"))
				}
				share := run.Value("val_correct") / run.Value("val_count")
				if name == "micro_f1 of one class" && run.Value("val_f1") != share {
					t.Errorf("the micro-F1 for one class per node is %v; want the accuracy, %v", run.Value("val_f1"), share)
				}
			}
		})
	}
}

// With several labels per node, training reports micro-F1 and chooses the best epoch by it. Most
// labels of this dataset are 0, so micro-F1 differs from accuracy.
func TestTrainReportsMicroF1(t *testing.T) {
	run := train(t, several(t), gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 2}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 6}, ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}})
	f1 := run.Value("test_micro_f1")
	if !(f1 > 0.7 && f1 <= 1) || !math.IsNaN(run.TestAccuracy()) {
		t.Errorf("micro-F1 %v, accuracy %v; want micro-F1 alone, above 0.7", f1, run.TestAccuracy())
	}
	if s := run.String(); !strings.Contains(s, "test micro f1 0.") {
		t.Errorf("the run prints %q", s)
	}
	r, err := gnb.Infer(t.Context(), run, several(t), filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Workers: 2, Threads: 1, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Metric != "micro_f1" || !(r.Value > 0.7 && r.Value <= 1) {
		t.Errorf("for all nodes the metrics are %+v; want a micro-F1 above 0.7", r)
	}
}

// With patience, training ends that number of epochs after the best one. If epochs are compared by
// loss, the best epoch has the lowest loss.
func TestPatience(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	ds := load(t, smallSet)
	for _, by := range []string{"metric", "loss"} {
		var losses, metrics []float64
		o := gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers: 2,
				Threads: 1,
				Seed:    2,
				Events: func(e runs.Event) {
					for _, v := range e.Values {
						switch {
						case e.Kind == "metrics" && v.Name == "val_loss":
							losses = append(losses, -v.Value)
						case e.Kind == "metrics" && v.Name == "val_accuracy":
							metrics = append(metrics, v.Value)
						}
					}
				},
			},
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: 200, LR: 0.05},
			ModelOptions:      gnb.ModelOptions{Hidden: 16},
			BestBy:            by,
			EvaluationOptions: gnb.EvaluationOptions{Patience: 4},
		}
		run := train(t, ds, o)
		scores := metrics
		if by == "loss" {
			scores = losses
		}
		best := 0
		for i, s := range scores {
			if s > scores[best] {
				best = i
			}
		}
		if len(scores) != best+1+o.Patience || run.Result.Epochs != len(scores) || run.Value("best_epoch") != float64(best) {
			t.Errorf("by %s: %d evaluations in %d epochs, the best %v at %v; want an end %d epochs after %d", by, len(scores), run.Result.Epochs, run.Value("best_epoch"), scores, o.Patience, best)
		}
		if by == "loss" && run.Value("val_loss") != -scores[best] {
			t.Errorf("the run reports a loss of %v, want %v", run.Value("val_loss"), -scores[best])
		}
		if run.ValAccuracy() != metrics[best] {
			t.Errorf("by %s: accuracy %v, want that of epoch %d, %v", by, run.ValAccuracy(), best, metrics[best])
		}
	}
	for _, o := range []gnb.TrainOptions{{BestBy: "luck", ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {EvaluationOptions: gnb.EvaluationOptions{Patience: -1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}} {
		if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
