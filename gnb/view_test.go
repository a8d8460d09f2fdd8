package gnb

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb/live"
)

// Rates are over the time in loops over batches: an evaluation between them does
// not slow them down, and a run that has ended shows its mean.
func TestRates(t *testing.T) {
	var r rankView
	for _, c := range []struct {
		now  worked
		want float64
	}{
		{worked{0, 0, 0}, 0},           // a batch is on its way
		{worked{100, 1000, 1}, 100},    // the first
		{worked{110, 1100, 1.1}, 100},  // too little to tell
		{worked{300, 3000, 2}, 200},    // the seconds since the first
		{worked{300, 3000, 2}, 200},    // an evaluation goes on
		{worked{301, 3010, 2.01}, 200}, // and is over
	} {
		r.update(c.now)
		if r.seedsSec != c.want || r.edgesSec != 10*c.want {
			t.Errorf("after %+v: %v seeds/s and %v edges/s, want %v and %v", c.now, r.seedsSec, r.edgesSec, c.want, 10*c.want)
		}
	}
	r.rates(worked{})
	if want := 301 / 2.01; math.Abs(r.seedsSec-want) > 1e-9 {
		t.Errorf("over the run: %v seeds/s, want %v", r.seedsSec, want)
	}
}

// An evaluation after the last epoch measures what that epoch has left, and is
// drawn there.
func TestEvaluationAfterTheLastEpoch(t *testing.T) {
	v := &view{l: &launched{run: &Run{Result: Result{Values: map[string]float64{}}}}, series: map[string]int{}}
	v.apply(event{Type: evPlan, Epochs: 3})
	for epoch := range 4 {
		v.apply(event{Type: evMetrics, Epoch: epoch, Values: []Value{{"val_accuracy", 0.5}}})
	}
	var got []int
	for _, p := range v.snap.Metrics[0].Points {
		got = append(got, p.Step)
	}
	if len(got) != 4 || got[0] != 1 || got[2] != 3 || got[3] != 3 {
		t.Errorf("evaluations of epochs 1 to 3 and after are drawn at %v", got)
	}
	v = &view{l: v.l, series: map[string]int{}, snap: live.Snapshot{}}
	v.apply(event{Type: evMetrics, Epoch: 6, Values: []Value{{"val_accuracy", 0.5}}})
	if p := v.snap.Metrics[0].Points[0].Step; p != 7 {
		t.Errorf("where the number of epochs is not known, the seventh is drawn at %d", p)
	}
}
