package metrics_test

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/metrics"
)

// Six rows of three classes, of which the last has no row, counted by hand as scikit-learn defines accuracy_score, f1_score and
// balanced_accuracy_score.
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
