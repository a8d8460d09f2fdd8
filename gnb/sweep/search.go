package sweep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/philox"
)

// search proposes trials in the order of their numbers. A proposal depends only on the seed, the trial's number and the
// results it is given, so a continued sweep proposes the same trials.
type search struct {
	method string
	seed   uint64
	levels int // values of a continuous range in a grid
	better func(a, b float64) bool

	ranges map[string]Hyperparameter
	order  []string // names in the order of their first request
	sobol  *sobolPoints
	grid   []gridStep // position of the grid's last point
	spent  bool       // the grid has no further point
}

// gridStep is the position of a hyper-parameter in a grid: value index of count.
type gridStep struct {
	name         string
	index, count int
}

const (
	methodGrid   = "grid"
	methodRandom = "random"
	methodSobol  = "sobol"
	methodTPE    = "tpe"
	methodASHA   = "asha"
)

var methods = []string{methodGrid, methodRandom, methodSobol, methodTPE, methodASHA}

// learns reports whether a method uses the results of earlier trials.
func learns(method string) bool { return method == methodTPE || method == methodASHA }

// propose calls the sweep's function for a trial. past has the results of all earlier trials except those that may
// still be running.
func (s *search) propose(number int, past []TrialResult, f func(*Trial) gnb.TrainOptions) (TrialResult, error) {
	t := &Trial{Number: number, ranges: s.ranges}
	at := 0 // index of the parameter in the grid
	t.pick = func(p Hyperparameter) float64 {
		switch s.method {
		case methodGrid, methodSeeds:
			at++
			return s.gridValue(t, at-1, p)
		case methodSobol:
			return p.at(s.sobolShare(number, p.Name))
		case methodTPE:
			return s.tpe(number, past, p)
		}
		return p.at(s.draw(number, p.Name).uniform())
	}
	o := f(t)
	if isGrid(s.method) {
		s.advance(at)
	}
	for _, p := range t.params {
		if _, ok := s.ranges[p.Name]; !ok {
			s.ranges[p.Name] = p
		}
	}
	return TrialResult{Number: number, Params: t.params, Options: o, Task: t.task}, t.err
}

// draws are random numbers for one parameter of one trial.
type draws struct{ philox.Stream }

// draw starts the random numbers of a hyper-parameter. They depend on its name, not on the order of requests.
func (s *search) draw(number int, name string) *draws {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))               // never fails
	id := int64(h.Sum64() & (1<<48 - 1))       // reduced to the width of an id
	c3 := philox.C3(philox.User, len(name), 0) // sweeps have no other draws
	return &draws{philox.NewStream(s.seed, id, number, c3)}
}

// uniform returns the next random number, at least 0 and below 1.
func (d *draws) uniform() float64 {
	hi, lo := d.Next(), d.Next()
	return float64(uint64(hi)<<21|uint64(lo)>>11) / (1 << 53)
}

// gridValue returns the value of the i-th hyper-parameter requested at a point of the grid. The
// points are visited like the leaves of a tree, depth first: the last hyper-parameter changes
// first.
func (s *search) gridValue(t *Trial, i int, p Hyperparameter) float64 {
	if p.Kind == kindInt && p.High-p.Low >= maxLevels {
		t.err = fmt.Errorf("sweep: a grid takes every value of %q, and there are %.0f; choose a few by sweep.Choice, or another method", p.Name, p.High-p.Low+1)
		return p.Low
	}
	all := p.levels(s.levels)
	if i == len(s.grid) {
		s.grid = append(s.grid, gridStep{p.Name, 0, len(all)})
	}
	g := s.grid[i]
	if g.name != p.Name || g.index >= len(all) {
		t.err = fmt.Errorf("sweep: the sweep's function asked for %q, and for %q in the same place before; its requests may depend only on the values of the trial", p.Name, g.name)
		return p.Low
	}
	return all[g.index]
}

// maxLevels bounds the values of one hyper-parameter in a grid.
const maxLevels = 10000

// advance moves to the next point of the grid, after a point at which n hyper-parameters were
// requested.
func (s *search) advance(n int) {
	s.grid = s.grid[:min(n, len(s.grid))]
	for len(s.grid) > 0 {
		last := &s.grid[len(s.grid)-1]
		if last.index++; last.index < last.count {
			return
		}
		s.grid = s.grid[:len(s.grid)-1]
	}
	s.spent = true
}

// The trials of a grid are counted before the first one starts, up to this number and for this long.
const mostCounted = 10000

var countFor = 200 * time.Millisecond // a variable, because tests may run slowly

// gridSize returns the number of trials of a grid. It returns 0 if there are most or more, if
// counting takes too long, or if the function makes an error, which the trial then reports.
func (s *Study) gridSize(f func(*Trial) gnb.TrainOptions, most int) int {
	grid, start := newSearch(s), time.Now()
	for n := range min(most, mostCounted) {
		if grid.spent {
			return n
		}
		if time.Since(start) > countFor {
			return 0
		}
		if _, err := grid.propose(n, nil, f); err != nil {
			return 0
		}
	}
	return 0
}

// sobolShare returns a coordinate of the point with the given number of a Sobol' sequence. It
// flips digits at random, the same ones in all points of a parameter: a digital shift, which keeps
// the sequence's uniformity (Owen 2003, Variance and discrepancy with alternative scramblings,
// doi:10.1145/945511.945518).
func (s *search) sobolShare(number int, name string) float64 {
	dim := slices.Index(s.order, name)
	if dim < 0 {
		dim = len(s.order)
		s.order = append(s.order, name)
	}
	if s.sobol == nil {
		s.sobol = newSobolPoints()
	}
	point, ok := s.sobol.at(number, dim)
	if !ok {
		return s.draw(number, name).uniform()
	}
	shift := s.draw(0, name).Next()
	return float64(point^shift) / (1 << 32)
}

// The constants of TPE, as in Optuna: random trials first, the size of the better part, and the number of candidates.
const (
	tpeStart      = 10
	tpeBetter     = 0.1
	tpeMostBetter = 25
	tpeCandidates = 24
)

// tpe returns a value proposed by a tree-structured Parzen estimator (Bergstra, Bardenet, Bengio,
// Kégl, Algorithms for Hyper-Parameter Optimization, NeurIPS 2011), for each hyper-parameter
// independently: candidates are drawn from the density of the best tenth of the trials, and the
// one with the highest ratio to the density of the others wins.
func (s *search) tpe(number int, past []TrialResult, p Hyperparameter) float64 {
	d := s.draw(number, p.Name)
	var seen []observation
	for _, t := range past {
		if i := slices.IndexFunc(t.Params, func(q Hyperparameter) bool { return q.Name == p.Name }); i >= 0 && t.State != runs.StateFailed {
			seen = append(seen, observation{t, t.Params[i]})
		}
	}
	if len(seen) < tpeStart || p.Kind != kindChoice && p.Low == p.High {
		return p.at(d.uniform())
	}
	ranked := slices.Clone(seen)
	slices.SortStableFunc(ranked, func(a, b observation) int { return compareTrials(a.trial, b.trial, s.better) })
	n := min(int(math.Ceil(tpeBetter*float64(len(seen)))), tpeMostBetter)
	isBest := map[int]bool{}
	for _, o := range ranked[:n] {
		isBest[o.trial.Number] = true
	}
	var best, rest []Hyperparameter // in the order of the trials, which determines their weights
	for _, o := range seen {
		if isBest[o.trial.Number] {
			best = append(best, o.param)
		} else {
			rest = append(rest, o.param)
		}
	}
	if p.Kind == kindChoice {
		return tpeChoice(p, best, rest, d)
	}
	return tpeNumber(p, best, rest, d)
}

type observation struct {
	trial TrialResult
	param Hyperparameter
}

// tpeChoice proposes the value of a choice. The likelihood of a value is proportional to one more
// than its weighted count.
func tpeChoice(p Hyperparameter, best, rest []Hyperparameter, d *draws) float64 {
	likelihood := func(of []Hyperparameter) []float64 {
		l := make([]float64, len(p.Choices))
		sum := 0.0
		for i, w := range ages(len(of)) {
			l[int(of[i].Value)] += w
			sum += w
		}
		for i := range l {
			l[i] = (l[i] + 1) / (sum + float64(len(l)))
		}
		return l
	}
	good, bad := likelihood(best), likelihood(rest)
	value, most := 0, math.Inf(-1)
	for range tpeCandidates {
		i, u := 0, d.uniform()
		for ; i < len(good)-1 && u >= good[i]; i++ {
			u -= good[i]
		}
		if ratio := good[i] / bad[i]; ratio > most {
			value, most = i, ratio
		}
	}
	return float64(value)
}

// tpeNumber proposes the value of a number, on the axis on which its range is uniform.
func tpeNumber(p Hyperparameter, best, rest []Hyperparameter, d *draws) float64 {
	shares := func(of []Hyperparameter) []float64 {
		x := make([]float64, len(of))
		for i, q := range of {
			x[i] = q.share()
		}
		return x
	}
	good, bad := newMixture(shares(best)), newMixture(shares(rest))
	value, most := 0.5, math.Inf(-1)
	for range tpeCandidates {
		x := good.draw(d)
		if ratio := good.density(x) / bad.density(x); ratio > most {
			value, most = x, ratio
		}
	}
	return p.at(value)
}

// compareTrials orders trials, the best first: finished ones by value, then stopped ones, those with more epochs first,
// then failed ones.
func compareTrials(a, b TrialResult, better func(a, b float64) bool) int {
	rank := map[string]int{runs.StateDone: 0, StateStopped: 1, runs.StateFailed: 2}
	byEpochs, byValue := 0, 0
	if a.State == StateStopped {
		byEpochs = cmp.Compare(b.epochs(), a.epochs())
	}
	switch {
	case better(a.Value, b.Value):
		byValue = -1
	case better(b.Value, a.Value):
		byValue = 1
	}
	return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), byEpochs, byValue, cmp.Compare(a.Number, b.Number))
}

// halving stops trials early by asynchronous successive halving (Li et al., A System for Massively Parallel
// Hyperparameter Tuning, MLSys 2020, arXiv:1810.05934), in the form that stops a trial and never promotes it later. At
// the rungs first, first·factor, first·factor², … epochs, a trial continues only if it is among the best 1/factor of the
// trials that reached the rung, or the best of fewer than factor.
type halving struct {
	first, factor int
	epochs        int // number of epochs after which the trial ends anyway
	better        func(a, b float64) bool
}

// stops reports whether to stop a trial at its last evaluation. It compares the trial with the
// trials in past at each rung that this evaluation is the first to reach.
func (h halving) stops(reports []Evaluation, past []TrialResult) bool {
	last := reports[len(reports)-1]
	before := 0
	if n := len(reports); n > 1 {
		before = reports[n-2].Epochs
	}
	for rung := h.first; rung <= last.Epochs && last.Epochs < h.epochs; rung *= h.factor {
		if rung <= before {
			continue
		}
		mine, _ := h.valueAt(reports, rung)
		above, all := 0, 1
		for _, t := range past {
			if theirs, ok := h.valueAt(t.Evaluations, rung); ok && t.State != runs.StateFailed {
				all++
				if h.better(theirs, mine) {
					above++
				}
			}
		}
		if above >= max(1, all/h.factor) {
			return true
		}
	}
	return false
}

// valueAt returns the best value up to the first evaluation at or after a rung.
func (h halving) valueAt(reports []Evaluation, rung int) (best float64, ok bool) {
	for i, r := range reports {
		if i == 0 || h.better(r.Value, best) {
			best = r.Value
		}
		if r.Epochs >= rung {
			return best, true
		}
	}
	return best, false
}
