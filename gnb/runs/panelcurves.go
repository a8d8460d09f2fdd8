package runs

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/live"
)

// passingName is the curve of the accuracy on the batches that are trained on, as they
// are trained on: with dropout, and by weights that change from step to step.
const passingName = "train batches"

// seriesOf is the index of the curve of a value, which is begun where there is none.
func (p *panel) seriesOf(name, curve string) int {
	i, ok := p.series[name]
	if !ok {
		i = len(p.snap.Metrics)
		p.series[name] = i
		p.snap.Metrics = append(p.snap.Metrics, live.Series{Name: curve})
	}
	return i
}

// passing takes the accuracy on an epoch's batches, unless the run is measured by
// something else, or evaluates the split that it trains on.
func (p *panel) passing(epoch int, accuracy float64) {
	if math.IsNaN(accuracy) || p.noPassing {
		return
	}
	i := p.seriesOf(passingName, passingName)
	p.snap.Metrics[i].Points = append(p.snap.Metrics[i].Points, live.Point{Step: epoch, Y: accuracy})
}

// dropPassing ends that curve, for good.
func (p *panel) dropPassing() {
	p.noPassing = true
	i, ok := p.series[passingName]
	if !ok {
		return
	}
	p.snap.Metrics = slices.Delete(slices.Clone(p.snap.Metrics), i, i+1)
	delete(p.series, passingName)
	for name, j := range p.series {
		if j > i {
			p.series[name] = j - 1
		}
	}
}
