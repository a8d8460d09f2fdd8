package gnb

import (
	"cmp"
	"math"
	"slices"

	"github.com/c-bata/goptuna/sobol"
	"github.com/c-bata/goptuna/tpe"
)

// What sweeps take from goptuna (github.com/c-bata/goptuna, MIT): the numbers of a
// Sobol' sequence and the widths of a Parzen estimator. Its samplers and its
// pruner are not used, since proposals must follow from the seed: in v0.9.0 they
// draw choices and mixture components from Go's global generator, leave out the
// upper end of whole numbers, add logarithms where a density has a sum, and
// overwrite a trial's value at a rung after it has gone on.

// sobolDims is how many parameters a Sobol' sequence has.
const sobolDims = 64

// sobolPoints are the points of a sequence as far as they are known: 32 binary
// digits a coordinate.
type sobolPoints struct {
	engine *sobol.Engine
	points [][]float64
}

// newSobolPoints begins a sequence at its first point, the origin, without which
// the first 2^k points are not even; the engine leaves it out.
func newSobolPoints() *sobolPoints {
	return &sobolPoints{engine: sobol.NewEngine(sobolDims), points: [][]float64{make([]float64, sobolDims)}}
}

// at is a coordinate of a point, if the sequence has so many.
func (s *sobolPoints) at(number, dim int) (uint32, bool) {
	if dim >= sobolDims {
		return 0, false
	}
	for len(s.points) <= number {
		s.points = append(s.points, s.engine.Draw())
	}
	return uint32(s.points[number][dim] * (1 << 32)), true
}

// ages are the weights of n observations, the oldest first: the last 25 count
// fully.
func ages(n int) []float64 { return tpe.DefaultWeights(n) }

// mixture is a density on 0 to 1: a normal distribution about each observation,
// cut off at the ends, as wide as the distance to its neighbours, and a wide one
// about the middle.
type mixture struct{ *tpe.ParzenEstimator }

// newMixture makes the density of observations, the oldest first.
func newMixture(x []float64) mixture {
	type weighted struct{ x, w float64 }
	obs := make([]weighted, len(x))
	for i, w := range ages(len(x)) {
		obs[i] = weighted{x[i], w}
	}
	// The estimator takes its observations for unsorted, sorts them, and then
	// sorts them once more by where they had been: in order they stay.
	slices.SortStableFunc(obs, func(a, b weighted) int { return cmp.Compare(a.x, b.x) })
	at, weights := make([]float64, len(x)), make([]float64, len(x))
	for i, o := range obs {
		at[i], weights[i] = o.x, o.w
	}
	return mixture{tpe.NewParzenEstimator(at, 0, 1, tpe.ParzenEstimatorParams{
		ConsiderPrior: true, PriorWeight: 1, ConsiderMagicClip: true, Weights: func(int) []float64 { return weights },
	})}
}

func normalCDF(x float64) float64 { return 0.5 * (1 + math.Erf(x/math.Sqrt2)) }

// within is the part of component i that lies from 0 to 1, from where to where in
// its distribution.
func (m mixture) within(i int) (from, to float64) {
	return normalCDF(-m.Mus[i] / m.Sigmas[i]), normalCDF((1 - m.Mus[i]) / m.Sigmas[i])
}

func (m mixture) draw(d *draws) float64 {
	i, u := 0, d.uniform()
	for ; i < len(m.Weights)-1 && u >= m.Weights[i]; i++ {
		u -= m.Weights[i]
	}
	from, to := m.within(i)
	x := m.Mus[i] + m.Sigmas[i]*math.Sqrt2*math.Erfinv(2*(from+d.uniform()*(to-from))-1)
	return min(max(x, 0), 1)
}

func (m mixture) density(x float64) float64 {
	sum := 0.0
	for i, w := range m.Weights {
		from, to := m.within(i)
		z := (x - m.Mus[i]) / m.Sigmas[i]
		sum += w * math.Exp(-z*z/2) / (m.Sigmas[i] * (to - from))
	}
	return sum
}
