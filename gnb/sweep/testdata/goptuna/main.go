// Command goptuna writes what goptuna computes, for the tests of package sweep: the digest of a Sobol' sequence,
// and Parzen estimators. It is a module of its own, so that nothing else depends on goptuna:
//
//	cd gnb/sweep/testdata/goptuna && go run . > ../goptuna.json
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/c-bata/goptuna/sobol"
	"github.com/c-bata/goptuna/tpe"

	"github.com/graphnb/graphnb/internal/philox"
)

// estimator is a Parzen estimator of observations, the oldest first, and the weights of their ages.
type estimator struct {
	Observations, Ages   []float64
	Mus, Sigmas, Weights []float64
}

type vectors struct {
	// Points are the first points of the sequence after the origin, and SHA256 is the digest of Count of them: of
	// the coordinates times 2^32, as little-endian 32-bit numbers.
	Dims, Count int
	Points      [][]float64
	SHA256      string
	Estimators  []estimator
}

func main() {
	v := vectors{Dims: 64, Count: 5000}
	engine, sum := sobol.NewEngine(uint32(v.Dims)), sha256.New()
	for n := range v.Count {
		point := engine.Draw()
		if n < 20 {
			v.Points = append(v.Points, point)
		}
		for _, x := range point {
			_ = binary.Write(sum, binary.LittleEndian, uint32(x*(1<<32)))
		}
	}
	v.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
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
			ages := tpe.DefaultWeights(n)
			// goptuna sorts its observations and then applies the order once more: it keeps sorted ones.
			at, by := sorted(x, ages)
			p := tpe.NewParzenEstimator(at, 0, 1, tpe.ParzenEstimatorParams{
				ConsiderPrior: true, PriorWeight: 1, ConsiderMagicClip: true, Weights: func(int) []float64 { return by },
			})
			v.Estimators = append(v.Estimators, estimator{x, ages, p.Mus, p.Sigmas, p.Weights})
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
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
