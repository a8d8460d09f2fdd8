package gnb

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/live"
)

// passingName is the curve of the accuracy on the batches that are trained on, as they
// are trained on: with dropout, and by weights that change from step to step.
const passingName = "train batches"

// seriesOf is the index of the curve of a value, which is begun where there is none.
func (v *view) seriesOf(name, curve string) int {
	i, ok := v.series[name]
	if !ok {
		i = len(v.snap.Metrics)
		v.series[name] = i
		v.snap.Metrics = append(v.snap.Metrics, live.Series{Name: curve})
	}
	return i
}

// passing takes the accuracy on an epoch's batches, unless the run is measured by
// something else, or evaluates the split that it trains on.
func (v *view) passing(epoch int, accuracy float64) {
	if math.IsNaN(accuracy) || v.noPassing {
		return
	}
	i := v.seriesOf(passingName, passingName)
	v.snap.Metrics[i].Points = append(v.snap.Metrics[i].Points, live.Point{Step: epoch, Y: accuracy})
}

// dropPassing ends that curve, for good.
func (v *view) dropPassing() {
	v.noPassing = true
	i, ok := v.series[passingName]
	if !ok {
		return
	}
	v.snap.Metrics = slices.Delete(slices.Clone(v.snap.Metrics), i, i+1)
	delete(v.series, passingName)
	for name, j := range v.series {
		if j > i {
			v.series[name] = j - 1
		}
	}
}
