package sweep

import (
	"math"
	"testing"

	"github.com/c-bata/goptuna/sobol"
	"github.com/c-bata/goptuna/tpe"

	"github.com/graphnb/graphnb/internal/philox"
)

// The sequence is goptuna's, whose first point is the second.
func TestSobolIsGoptunas(t *testing.T) {
	engine, ours := sobol.NewEngine(sobolDims), newSobolPoints()
	for dim := range sobolDims {
		if x, ok := ours.at(0, dim); !ok || x != 0 {
			t.Fatalf("coordinate %d of the first point is %d", dim, x)
		}
	}
	for n := 1; n <= 5000; n++ {
		for dim, want := range engine.Draw() {
			if x, ok := ours.at(n, dim); !ok || float64(x)/(1<<32) != want {
				t.Fatalf("coordinate %d of point %d is %v, want %v", dim, n, float64(x)/(1<<32), want)
			}
		}
	}
	if _, ok := ours.at(1, sobolDims); ok {
		t.Errorf("the sequence has more than %d dimensions", sobolDims)
	}
}

// The first 2^k points of each dimension lie in different ones of 2^k equal intervals.
func TestSobolIsEven(t *testing.T) {
	s := newSobolPoints()
	const k = 9
	for dim := range sobolDims {
		var seen [1 << k]bool
		for n := range 1 << k {
			x, _ := s.at(n, dim)
			if seen[x>>(32-k)] {
				t.Fatalf("two of the first %d points share an interval of dimension %d", 1<<k, dim)
			}
			seen[x>>(32-k)] = true
		}
	}
}

// The densities are goptuna's Parzen estimators. Their weights differ in the last digit where goptuna's are not
// whole numbers: it adds them by vector instructions, where the processor has some.
func TestMixtureIsGoptunas(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 24, 25, 26, 27, 40, 120} {
		for variant := range 4 {
			x := make([]float64, n)
			for i := range x {
				u := philox.NewStream(1, int64(i), n, philox.C3(philox.User, 0, variant))
				x[i] = float64(u.Next()) / (1 << 32)
				switch variant {
				case 1:
					x[i] = math.Round(4*x[i]) / 4 // many of one value, and of the middle
				case 2:
					x[i] = 0.5 + 1e-3*x[i]
				case 3:
					x[i] = math.Round(x[i]) // at the ends
				}
			}
			got := newMixture(x)
			weights, want := tpe.DefaultWeights(n), (*tpe.ParzenEstimator)(nil)
			for i, w := range ages(n) {
				if w != weights[i] {
					t.Fatalf("%d observations: weight %d is %v, want %v", n, i, w, weights[i])
				}
			}
			// It sorts its observations, and then once more by where they had been: in order they stay.
			at, by := sorted(x, weights)
			want = tpe.NewParzenEstimator(at, 0, 1, tpe.ParzenEstimatorParams{
				ConsiderPrior: true, PriorWeight: 1, ConsiderMagicClip: true, Weights: func(int) []float64 { return by },
			})
			for i := range want.Mus {
				if got.mus[i] != want.Mus[i] || got.sigmas[i] != want.Sigmas[i] || math.Abs(got.weights[i]-want.Weights[i]) > 1e-15 {
					t.Fatalf("%d observations, variant %d: component %d is %v, %v, %v, want %v, %v, %v", n, variant, i,
						got.mus[i], got.sigmas[i], got.weights[i], want.Mus[i], want.Sigmas[i], want.Weights[i])
				}
			}
			if len(got.mus) != len(want.Mus) {
				t.Fatalf("%d components, want %d", len(got.mus), len(want.Mus))
			}
		}
	}
}

// sorted are values and their weights by value, those of one value in their order.
func sorted(x, w []float64) (at, by []float64) {
	for i := range x {
		j := len(at)
		for j > 0 && at[j-1] > x[i] {
			j--
		}
		at = append(at[:j], append([]float64{x[i]}, at[j:]...)...)
		by = append(by[:j], append([]float64{w[i]}, by[j:]...)...)
	}
	return at, by
}
