package recorder

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// passingName names the curve of the accuracy on the training batches, measured during training:
// with dropout, and with weights that change from step to step.
const passingName = "train batches"

// seriesOf returns the index of a value's curve, and starts the curve if there is none.
func (p *panel) seriesOf(name, curve string) int {
	i, ok := p.series[name]
	if !ok {
		i = len(p.snap.Metrics)
		p.series[name] = i
		p.snap.Metrics = append(p.snap.Metrics, live.Series{Name: curve})
	}
	return i
}

// passing adds the accuracy on an epoch's training batches, unless the dataset has another metric
// or the run also evaluates the training split.
func (p *panel) passing(epoch int, accuracy float64) {
	if math.IsNaN(accuracy) || p.noPassing {
		return
	}
	i := p.seriesOf(passingName, passingName)
	p.snap.Metrics[i].Points = append(p.snap.Metrics[i].Points, chart.Point{Step: epoch, Y: accuracy})
}

// dropPassing removes the curve of the training batches for the rest of the run.
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

// mostLogged bounds the logged names that are drawn, so that a name made of numbers cannot fill the memory.
const mostLogged = 200

// log adds logged values to their curves, over steps, or over epochs in a program without steps. Values of an
// evaluation have a curve already.
func (p *panel) log(e runs.Event) {
	s := &p.snap
	at := int(e.Total)
	if e.Total == 0 {
		at = e.Epoch + 1
	}
	for _, v := range e.Values {
		if _, evaluated := p.series[v.Name]; evaluated || !runfile.OwnCurve(v.Name) {
			continue
		}
		i := slices.IndexFunc(s.Logged, func(m live.Series) bool { return m.Name == v.Name })
		if i < 0 {
			if len(s.Logged) == mostLogged {
				continue
			}
			i = len(s.Logged)
			s.Logged = append(s.Logged, live.Series{Name: v.Name})
		}
		s.Logged[i].Points = append(s.Logged[i].Points, chart.Point{Step: at, Y: v.Value})
	}
}
