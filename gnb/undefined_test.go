package gnb_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// oneClass is a dataset measured by the ROC AUC, whose nodes of some splits are all of class 1.
func oneClass(splits ...string) *gnb.Dataset {
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=300&classes=2&features=6"))
	ds.Meta.Metric = dataset.MetricROCAUC
	for _, s := range splits {
		for _, v := range ds.Splits[s] {
			ds.Labels[v] = 1
		}
	}
	return ds
}

// A split on which the metric does not exist is refused before work starts if it chooses the best epoch. Otherwise the run
// says so, and its result names the reason instead of the value.
func TestUndefinedMetric(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	o := small()
	o.Patience = 1
	if r, err := gnb.Train(t.Context(), oneClass("val"), gnb.SAGE, o); !errors.Is(err, gnb.ErrUndefined) || r != nil {
		t.Errorf("choosing by a metric that does not exist gave %v, %v", r, err)
	}
	if all, err := runs.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("it left the runs %v, %v", all, err)
	}
	for name, c := range map[string]struct {
		ds      *gnb.Dataset
		byLoss  bool
		lacks   string
		has     []string
		workers int
	}{
		"by the loss":  {oneClass("val"), true, "val_auc", []string{"val_loss", "test_auc", "best_epoch"}, 1},
		"the test":     {oneClass("test"), false, "test_auc", []string{"val_auc", "best_epoch"}, 1},
		"by 2 workers": {oneClass("test"), false, "test_auc", []string{"val_auc", "best_epoch"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.Workers = c.workers
			if c.byLoss {
				o.BestBy = "loss"
			}
			r, text, err := printed(t, c.ds, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := r.Result.Values[c.lacks]; ok || !strings.HasPrefix(r.Result.Text[c.lacks], runs.Undefined) {
				t.Errorf("the result has %v, %q", r.Result.Values, r.Result.Text)
			}
			if strings.Count(text, c.lacks) != 1 {
				t.Errorf("the run said %q", text)
			}
			for _, v := range c.has {
				if math.IsNaN(r.Value(v)) {
					t.Errorf("the result lacks %s", v)
				}
			}
		})
	}
}

// logged is a program that logs given values, NaN for those above 9, and chooses the best epoch by them.
var logged = gnb.Program("test.logged", func(w *gnb.Worker, a struct {
	Values   []float64
	Patience int
},
) error {
	ds := w.Dataset()
	net := gnb.MLP.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 1})
	opt := w.Adam(net, 0.01)
	w.BestBy(net, gnb.Best{By: "m", Patience: a.Patience})
	for epoch := range w.Epochs(len(a.Values)) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{2}, Batch: 512}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		x := a.Values[epoch]
		switch {
		case x > 99:
			x = math.Inf(1)
		case x > 9:
			x = math.NaN()
		}
		w.Log("m", x)
	}
	return nil
})

// A value that is not finite is never the best, does not begin patience, and is told.
func TestBestByPassesOverWhatIsNotFinite(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=300&classes=2&features=6"))
	const nan, inf = 10, 100
	for _, c := range []struct {
		name     string
		values   []float64
		patience int
		best     float64 // NaN for none
		epochs   int
		said     string
	}{
		{"NaN first", []float64{nan, nan, nan, .9, .8, .7, .6}, 2, 3, 6, "in 3 of 6 epochs"},
		{"NaN after the best", []float64{.9, nan, nan, nan}, 2, 0, 3, "in 2 of 3 epochs"},
		{"NaN alone", []float64{nan, nan, nan, nan}, 1, math.NaN(), 4, "no epoch is the best"},
		{"infinite", []float64{.1, inf, .3}, 0, 2, 3, "in 1 of 3 epochs"},
		{"finite", []float64{.1, .2, .3}, 0, 2, 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said strings.Builder
			r, err := gnb.Launch(t.Context(), logged, struct {
				Values   []float64
				Patience int
			}{c.values, c.patience}, gnb.LaunchOptions{
				Data:    ds,
				Workers: 2,
				Device:  "cpu",
				Resume:  gnb.Never,
				Quiet:   true,
				Events: func(e runs.Event) {
					if e.Kind == runs.KindPrint {
						said.WriteString(e.Text)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if best := r.Value("best_epoch"); best != c.best && !(math.IsNaN(best) && math.IsNaN(c.best)) || r.Result.Epochs != c.epochs {
				t.Errorf("the best epoch is %v of %d, want %v of %d", best, r.Result.Epochs, c.best, c.epochs)
			}
			if !strings.Contains(said.String(), c.said) || c.said == "" && said.Len() > 0 {
				t.Errorf("the run said %q, want %q", said.String(), c.said)
			}
		})
	}
}
