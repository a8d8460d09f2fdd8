package sweep

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// recent is the number of newest observations that have the full weight.
const recent = 25

// ages returns the weights of n observations, the oldest first: the last [recent] have weight 1;
// the weights of earlier ones fall with age, down to 1/n.
func ages(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	if old := n - recent; old > 0 {
		first := 1 / float64(n)
		for i := range old {
			w[i] = first
			if old > 1 {
				w[i] += float64(i) * ((1 - first) / float64(old-1))
			}
		}
	}
	return w
}

// mixture is a density on 0 to 1, a Parzen estimator: a normal distribution about each observation, cut off at
// the ends, as wide as the distance to the farther of its neighbours, and a wide one about the middle. It is
// the estimator of the Tree-structured Parzen Estimator (Bergstra et al., Algorithms for hyper-parameter
// optimization, NeurIPS 2011) with the prior and the "magic clip" of Hyperopt and Optuna.
type mixture struct {
	weights, mus, sigmas []float64 // components by ascending mu
}

// newMixture makes the density of observations, the oldest first.
func newMixture(x []float64) mixture {
	type component struct{ mu, weight float64 }
	parts := make([]component, len(x))
	for i, w := range ages(len(x)) {
		parts[i] = component{x[i], w}
	}
	slices.SortStableFunc(parts, func(a, b component) int { return cmp.Compare(a.mu, b.mu) })
	const middle = 0.5
	prior := sort.Search(len(parts), func(i int) bool { return parts[i].mu >= middle })
	parts = slices.Insert(parts, prior, component{middle, 1})
	n := len(parts)
	m := mixture{make([]float64, n), make([]float64, n), make([]float64, n)}
	sum := 0.0
	for _, p := range parts {
		sum += p.weight
	}
	narrowest := 1 / min(100, 1+float64(n))
	for i, p := range parts {
		m.weights[i], m.mus[i] = p.weight/sum, p.mu
		width := 0.0
		if i > 0 {
			width = p.mu - parts[i-1].mu
		}
		if i+1 < n { // the ends of the range do not count as neighbours
			width = max(width, parts[i+1].mu-p.mu)
		}
		m.sigmas[i] = min(max(width, narrowest), 1)
	}
	m.sigmas[prior] = 1
	return m
}

func normalCDF(x float64) float64 { return 0.5 * (1 + math.Erf(x/math.Sqrt2)) }

// within returns the values of component i's cumulative distribution at 0 and at 1.
func (m mixture) within(i int) (from, to float64) {
	return normalCDF(-m.mus[i] / m.sigmas[i]), normalCDF((1 - m.mus[i]) / m.sigmas[i])
}

func (m mixture) draw(d *draws) float64 {
	i, u := 0, d.uniform()
	for ; i < len(m.weights)-1 && u >= m.weights[i]; i++ {
		u -= m.weights[i]
	}
	from, to := m.within(i)
	x := m.mus[i] + m.sigmas[i]*math.Sqrt2*math.Erfinv(2*(from+d.uniform()*(to-from))-1)
	return min(max(x, 0), 1)
}

func (m mixture) density(x float64) float64 {
	sum := 0.0
	for i, w := range m.weights {
		from, to := m.within(i)
		z := (x - m.mus[i]) / m.sigmas[i]
		sum += w * math.Exp(-z*z/2) / (m.sigmas[i] * (to - from))
	}
	return sum
}
