package recorder

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/machine"
)

// Rates are computed over the time spent in loops over batches, so an evaluation between loops does
// not lower them. A run that has ended shows its mean rate.
func TestRates(t *testing.T) {
	var r rank
	for _, c := range []struct {
		now  worked
		want float64
	}{
		{worked{seeds: 0, edges: 0, seconds: 0}, 0},           // the first batch is in progress
		{worked{seeds: 100, edges: 1000, seconds: 1}, 100},    // the first batch has ended
		{worked{seeds: 110, edges: 1100, seconds: 1.1}, 100},  // too little time for a new rate
		{worked{seeds: 300, edges: 3000, seconds: 2}, 200},    // the rate since the first batch
		{worked{seeds: 300, edges: 3000, seconds: 2}, 200},    // an evaluation in progress
		{worked{seeds: 301, edges: 3010, seconds: 2.01}, 200}, // the evaluation is over
	} {
		r.update(c.now)
		if r.perSec.seeds != c.want || r.perSec.edges != 10*c.want {
			t.Errorf("after %+v: %v seeds/s and %v edges/s, want %v and %v", c.now, r.perSec.seeds, r.perSec.edges, c.want, 10*c.want)
		}
	}
	r.rates(worked{})
	if want := 301 / 2.01; math.Abs(r.perSec.seeds-want) > 1e-9 {
		t.Errorf("the mean rate of the run is %v seeds/s, want %v", r.perSec.seeds, want)
	}
}

// An evaluation after the last epoch measures the state at the end of that epoch and is drawn
// there.
func TestEvaluationAfterTheLastEpoch(t *testing.T) {
	p := &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindPlan, Epochs: 3})
	for epoch := range 4 {
		p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: epoch, Values: []runs.NamedValue{{Name: "val_accuracy", Value: 0.5}}})
	}
	var got []int
	for _, q := range p.snap.Metrics[0].Points {
		got = append(got, q.Step)
	}
	if len(got) != 4 || got[0] != 1 || got[2] != 3 || got[3] != 3 {
		t.Errorf("the evaluations of epochs 1 to 3 and the one after them are drawn at %v", got)
	}
	p = &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: 6, Values: []runs.NamedValue{{Name: "val_accuracy", Value: 0.5}}})
	if at := p.snap.Metrics[0].Points[0].Step; at != 7 {
		t.Errorf("if the number of epochs is unknown, the seventh is drawn at %d", at)
	}
}

// A finished run shows the loss of its result, the mean of the last epoch, in a cell and in a pipe, whether the panel has seen the
// epochs or, as that of a resumed run and of Attach, only their record.
func TestLossOfAFinishedRun(t *testing.T) {
	for _, seen := range []bool{true, false} {
		var pipe bytes.Buffer
		tape := &screentest.Tape{}
		for where, o := range map[string]screen.Options{"a pipe": {Out: &pipe}, "a cell": {Display: tape}} {
			var r runs.Run
			p := newPanelOn(live.New(o), runs.Config{}, "a run", 0)
			p.Observe(runs.Event{Kind: runs.KindPlan, Epochs: 30})
			total := int64(0)
			for epoch := range 30 {
				if seen {
					p.Observe(runs.Event{Kind: runs.KindLoop, Epoch: epoch, Steps: 3})
				}
				for step := range 3 {
					total++
					p.Observe(runs.Event{Kind: runs.KindSteps, Records: []runs.Step{{Epoch: epoch, Step: step, Total: total, Loss: 40 - float64(epoch)}}})
				}
				e := runs.Event{Kind: runs.KindEpoch, Epoch: epoch, Loss: 40.5 - float64(epoch)} // weighted, unlike the mean over steps
				r.Observe(e)
				p.Observe(e)
			}
			p.end(screen.Done, "", time.Second)
			p.close()
			shown := pipe.String()
			if where == "a cell" {
				all := tape.All()
				shown = screentest.HTMLOf(all[len(all)-1])
			}
			if r.Loss() != 11.5 || !strings.Contains(shown, "11.50") {
				t.Errorf("epochs seen: %v, in %s: the loss %v of the result is not in %s", seen, where, r.Loss(), shown)
			}
		}
	}
}

// The curve of the learning rate has a point for each step at which the rate changes.
func TestLearningRateOfSteps(t *testing.T) {
	p := &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindSteps, Records: []runs.Step{{Total: 1}, {Total: 2, LR: 0.1}, {Total: 3, LR: 0.1}, {Total: 4, LR: 0}}})
	if want := []chart.Point{{Step: 2, Y: 0.1}, {Step: 4, Y: 0}}; !slices.Equal(p.snap.LR, want) {
		t.Errorf("learning rates %v, want %v", p.snap.LR, want)
	}
}

// The accuracy on the batches is shown until another metric, or an evaluation of the split itself,
// replaces it.
func TestAccuracyInPassing(t *testing.T) {
	names := func(p *panel) (out []string) {
		for _, m := range p.snap.Metrics {
			out = append(out, m.Name)
		}
		return out
	}
	for _, c := range []struct {
		value string
		want  []string
	}{
		{"val_accuracy", []string{"train batches", "val"}},
		{"train_accuracy", []string{"train"}},
		{"val_auc", []string{"val"}},
	} {
		p := &panel{series: map[string]int{}}
		p.apply(runs.Event{Kind: runs.KindEpoch, Epoch: 0, Accuracy: math.NaN()}) // the epoch counted no labels
		if len(p.snap.Metrics) > 0 {
			t.Errorf("an accuracy without labels is shown: %v", p.snap.Metrics)
		}
		for epoch := range 2 {
			p.apply(runs.Event{Kind: runs.KindEpoch, Epoch: epoch, Accuracy: 0.25})
			p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: epoch, Values: []runs.NamedValue{{Name: c.value, Value: 0.5}}})
		}
		if got := names(p); !slices.Equal(got, c.want) {
			t.Errorf("with %s: curves %v, want %v", c.value, got, c.want)
		}
		last := p.snap.Metrics[len(p.snap.Metrics)-1]
		if len(last.Points) != 2 || last.Points[1] != (chart.Point{Step: 2, Y: 0.5}) {
			t.Errorf("with %s: the last curve has the points %v", c.value, last.Points)
		}
	}
}

// What a program logs is a curve over its steps. The epoch, the step, the loss and the values of an evaluation have
// curves already, and a program without steps counts its epochs.
func TestLoggedValuesAreCurves(t *testing.T) {
	p := &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindMetrics, Total: 10, Values: []runs.NamedValue{{Name: "val_accuracy", Value: 0.5}}})
	for i := range 2 {
		p.apply(runs.Event{Kind: runs.KindLog, Total: int64(10 * (i + 1)), Values: []runs.NamedValue{
			{Name: "epoch", Value: 1}, {Name: "step", Value: 1}, {Name: "loss", Value: 1}, {Name: "val_accuracy", Value: 0.5}, {Name: "val_f1", Value: float64(i)},
		}})
	}
	if s := p.snap.Logged; len(s) != 1 || s[0].Name != "val_f1" || !slices.Equal(s[0].Points, []chart.Point{{Step: 10, Y: 0}, {Step: 20, Y: 1}}) {
		t.Errorf("the curves are %v", s)
	}
	p.restart(1)
	if len(p.snap.Logged) != 0 {
		t.Errorf("after a restart the curves are %v", p.snap.Logged)
	}
	p.apply(runs.Event{Kind: runs.KindLog, Epoch: 4, Values: []runs.NamedValue{{Name: "val_f1", Value: 0.5}}})
	if s := p.snap.Logged; len(s) != 1 || s[0].Points[0].Step != 5 {
		t.Errorf("without steps the curves are %v", s)
	}
	for i := range 2 * mostLogged {
		p.apply(runs.Event{Kind: runs.KindLog, Values: []runs.NamedValue{{Name: fmt.Sprint("x", i), Value: 0.5}}})
	}
	if n := len(p.snap.Logged); n != mostLogged {
		t.Errorf("%d names are drawn", n)
	}
}

// The machine's limit depends on the run's mix of work. Here two ranks together read 4 GB/s of rows
// and 6 GB/s of other data, and compute 100 GFLOP/s.
func TestCeiling(t *testing.T) {
	ranks := []rank{{perSec: pace{edges: 1e6, flop: 40e9, rowBytes: 1e9, streamBytes: 6e9}}, {perSec: pace{edges: 3e6, flop: 60e9, rowBytes: 3e9}}}
	limits := machine.Limits{GFLOPS: 500, CopyGBs: 20, RowGBs: 10}
	check := func(c ceiling, want [3]float64) {
		t.Helper()
		got := c.rates(ranks)
		for i, r := range got {
			if achieved := [3]float64{4e6, 100e9, 10e9}[i]; r.PerSec != achieved || math.Abs(r.Limit-want[i]) > 1e-9*want[i] {
				t.Errorf("%s: %v of %v, want %v of %v", r.Unit, r.PerSec, r.Limit, achieved, want[i])
			}
		}
	}
	// Rows take 0.4 s of each second at their limit, other data 0.3 s, and products 0.2 s.
	check(ceiling{limits: limits, known: true, products: true, memory: true}, [3]float64{4e6 / 0.9, 500e9, 10e9 / 0.7})
	check(ceiling{limits: limits, known: true, memory: true}, [3]float64{0, 0, 10e9 / 0.7}) // products in bfloat16 have no measured limit
	check(ceiling{products: true, memory: true}, [3]float64{})                              // without measured limits
	for _, r := range (&ceiling{limits: limits, known: true, products: true, memory: true}).rates(make([]rank, 2)) {
		if r.PerSec != 0 || r.Limit != 0 && r.Unit != "FLOP/s" {
			t.Errorf("before the first step the limit is %+v", r)
		}
	}
}

// A task's remaining time is estimated from its rate since its first report. Another task, or a
// repetition of the same one, starts a new estimate.
func TestTaskLeft(t *testing.T) {
	var k task
	at := time.Unix(1000, 0)
	for i, c := range []struct {
		name        string
		after, done int64
		want        time.Duration
	}{
		{"evaluate", 0, 100, 0}, // the first report allows no estimate
		{"evaluate", 2, 200, 16 * time.Second},
		{"evaluate", 6, 400, 12 * time.Second},
		{"evaluate", 30, 1000, 0},
		{"evaluate", 31, 50, 0}, // the task starts again
		{"evaluate", 32, 150, 8500 * time.Millisecond},
		{"sample", 33, 160, 0}, // another task
	} {
		got := k.left(runs.Event{Text: c.name, Done: c.done, Of: 1000}, at.Add(time.Duration(c.after)*time.Second))
		if got != c.want {
			t.Errorf("report %d, %+v: %v left", i, c, got)
		}
	}
}

// In a run without epochs, such as inference or sampling, the panel shows the task's progress as
// the run's.
func TestTaskIsTheRun(t *testing.T) {
	p := &panel{series: map[string]int{}}
	p.task = task{name: "evaluate", start: time.Now().Add(-10 * time.Second), from: 0, last: 1}
	p.apply(runs.Event{Kind: runs.KindProgress, Text: "evaluate", Done: 250, Of: 1000})
	p.timing()
	if s := p.snap; s.Unit != "evaluate" || s.Step != 250 || s.Steps != 1000 || s.Left < 29*time.Second || !strings.Contains(s.Detail, "evaluate: 250 of 1000, 30s left") {
		t.Errorf("the panel shows %q %d of %d, %v left: %s", s.Unit, s.Step, s.Steps, s.Left, s.Detail)
	}
	p = &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindPlan, Epochs: 2})
	p.apply(runs.Event{Kind: runs.KindProgress, Text: "evaluate", Done: 250, Of: 1000})
	if s := p.snap; s.Steps != 0 || s.Unit != "" {
		t.Errorf("an evaluation within a run is shown as the run's steps: %+v", s)
	}
}

// The metric that chooses the best epoch has its title in the panel, and its direction.
func TestPanelOfALowerMetric(t *testing.T) {
	p := &panel{series: map[string]int{}}
	p.apply(runs.Event{Kind: runs.KindMetric, Metric: &metrics.Metric{Name: "rmse", Title: "RMSE", Lower: true}})
	for epoch, y := range []float64{3, 1, 2} {
		p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: epoch, Values: []runs.NamedValue{{Name: "val_rmse", Value: y}, {Name: "val_loss", Value: 9}}})
	}
	if len(p.snap.Metrics) != 1 || p.snap.Metrics[0].Name != "val" || p.snap.Metric != "RMSE" || !p.snap.Lower {
		t.Errorf("the panel has the metric %q (lower is better: %v) and the curves %v", p.snap.Metric, p.snap.Lower, p.snap.Metrics)
	}
	// Where the metric that chooses is not the first one, it is drawn, and also on the split that is measured at the end.
	p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: 3, Values: []runs.NamedValue{{Name: "val_mae", Value: 0.5}, {Name: "val_rmse", Value: 4}, {Name: "val_r2", Value: 0.9}}})
	p.apply(runs.Event{Kind: runs.KindMetrics, Epoch: 3, Values: []runs.NamedValue{{Name: "test_mae", Value: 0.5}, {Name: "test_rmse", Value: 5}}})
	if val := p.snap.Metrics[0].Points; val[3].Y != 4 || p.snap.Metrics[1].Points[0].Y != 5 || p.snap.Metric != "RMSE" || !p.snap.Lower {
		t.Errorf("the panel has the metric %q (lower is better: %v) and the curves %v", p.snap.Metric, p.snap.Lower, p.snap.Metrics)
	}
	// Of a program that does not say what chooses, the library's metrics have their direction.
	for name, lower := range map[string]bool{"val_mae": true, "val_r2": false, "val_accuracy": false} {
		p = &panel{series: map[string]int{}}
		p.apply(runs.Event{Kind: runs.KindMetrics, Values: []runs.NamedValue{{Name: name, Value: 1}}})
		if p.snap.Lower != lower {
			t.Errorf("of %s, lower is better: %v", name, p.snap.Lower)
		}
	}
}

// Rates are in the unit of the loop.
func TestPanelOfUnits(t *testing.T) {
	p := newPanelOn(live.New(screen.Options{Quiet: true}), runs.Config{}, "", 1)
	p.apply(runs.Event{Kind: runs.KindLoop, Split: "graphs", Unit: "graphs", Steps: 1})
	if p.snap.Counted != "graphs" {
		t.Errorf("the panel counts %q", p.snap.Counted)
	}
	if p.apply(runs.Event{Kind: runs.KindLoop, Split: "train", Steps: 1}); p.snap.Counted != "" {
		t.Errorf("the panel counts %q", p.snap.Counted)
	}
}
