package metrics_test

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/metrics"
)

// Six rows of three classes, of which the last has no row, counted by hand as scikit-learn defines accuracy_score, f1_score,
// balanced_accuracy_score and matthews_corrcoef.
func TestMetricsByHand(t *testing.T) {
	labels, answers := []int32{0, 0, 0, 1, 1, 1}, []int{0, 0, 1, 1, 0, 2}
	for _, c := range []struct {
		of   metrics.Metric
		want float64
	}{
		{metrics.AccuracyMetric, 3. / 6},
		{metrics.MicroF1Metric, 3. / 6},
		{metrics.MacroF1Metric, (2./3 + 2./5 + 0) / 3},
		{metrics.BalancedAccuracyMetric, (2./3 + 1./3) / 2},
		{metrics.MatthewsMetric, (3*6 - 3*3 - 3*2) / (math.Sqrt(6*6-3*3-3*3) * math.Sqrt(6*6-3*3-2*2-1*1))},
	} {
		tally := c.of.New(3)
		for i, y := range labels {
			row := make([]float32, 3)
			row[answers[i]] = 1
			tally.Add(row, metrics.Answer{Class: y})
		}
		if got, n := tally.Value(); n != 6 || math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%v: %v of %d rows, want %v", c.of, got, n, c.want)
		}
		if none, n := c.of.New(3).Value(); n != 0 || !math.IsNaN(none) {
			t.Errorf("%v of no rows is %v of %d", c.of, none, n)
		}
	}
}

// The correlation does not depend on how rows are dealt to ranks, and is 0 where scikit-learn says so.
func TestMatthews(t *testing.T) {
	for _, c := range []struct {
		name            string
		labels, answers []int
		want            float64
	}{
		{"documented by scikit-learn", []int{1, 1, 1, 0}, []int{1, 0, 1, 1}, -1. / 3},
		{"all right", []int{0, 1, 2, 2}, []int{0, 1, 2, 2}, 1},
		{"all wrong", []int{0, 1, 1, 0}, []int{1, 0, 0, 1}, -1},
		{"one class", []int{1, 1, 1}, []int{0, 1, 2}, 0},
		{"one answer", []int{0, 1, 2}, []int{1, 1, 1}, 0},
	} {
		ranks := []metrics.Tally{metrics.MatthewsMetric.New(3), metrics.MatthewsMetric.New(3)}
		for i, y := range c.labels {
			row := make([]float32, 3)
			row[c.answers[i]] = 1
			ranks[i%2].Add(row, metrics.Answer{Class: int32(y)})
		}
		if err := ranks[0].Merge(ranks[1].Encode()); err != nil {
			t.Fatal(err)
		}
		if got, n := ranks[0].Value(); n != int64(len(c.labels)) || math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: %v of %d rows, want %v", c.name, got, n, c.want)
		}
	}
	several := metrics.MatthewsMetric.New(3)
	several.Add([]float32{1, -1, 5}, metrics.Answer{Labels: []int8{1, 1, -1}})
	several.Add([]float32{1, 2, -5}, metrics.Answer{Labels: []int8{1, 1, 0}})
	if got, n := several.Value(); n != 5 || math.Abs(got-3/math.Sqrt(4*1*2*3)) > 1e-15 { // 3 true positives, 1 true negative, 1 missed
		t.Errorf("of several labels: %v of %d", got, n)
	}
	if err := several.Merge(make([]byte, 8)); err == nil {
		t.Error("counts of another metric were merged")
	}
}
