package metrics_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/graphnb/graphnb/graphops/metrics"
)

var nan32 = float32(math.NaN())

// tallied returns a metric of rows that several ranks have counted.
func tallied(t *testing.T, m metrics.Metric, ranks int, targets int, y, p []float32) (float64, int64) {
	t.Helper()
	tallies := make([]metrics.Tally, ranks)
	for r := range tallies {
		tallies[r] = m.New(0)
	}
	for i := 0; i < len(y); i += targets {
		tallies[i/targets%ranks].Add(p[i:i+targets], metrics.Answer{Numbers: y[i : i+targets]})
	}
	for _, other := range tallies[1:] {
		if err := tallies[0].Merge(other.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	return tallies[0].Value()
}

// The metrics are those of scikit-learn (testdata/regression.py), and the ranks that counted change no bit.
func TestNumbersAreScikitLearns(t *testing.T) {
	text, err := os.ReadFile("testdata/regression.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Targets int
		Y, P    []*float32 // nil is missing
		Want    map[string]float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 20 {
		t.Fatalf("regression.json has %d cases", len(cases))
	}
	floats := func(from []*float32) (to []float32) {
		for _, x := range from {
			if x == nil {
				to = append(to, nan32)
			} else {
				to = append(to, *x)
			}
		}
		return to
	}
	for i, c := range cases {
		y, p := floats(c.Y), floats(c.P)
		for _, m := range metrics.Numbers {
			one, count := tallied(t, m, 1, c.Targets, y, p)
			want := c.Want[m.Name]
			if math.Abs(one-want) > 1e-12*math.Abs(want) {
				t.Errorf("case %d: %s is %v, scikit-learn's %v", i, m, one, want)
			}
			for _, ranks := range []int{2, 3, 7} {
				if many, n := tallied(t, m, ranks, c.Targets, y, p); many != one || n != count {
					t.Errorf("case %d: %s of %d ranks is %v of %d, and of one %v of %d", i, m, ranks, many, n, one, count)
				}
			}
		}
	}
}

// Sums have no rounding: small errors beside large ones, and targets far from 0, keep all digits.
func TestNumbersAreExact(t *testing.T) {
	y, p := []float32{1e30, 1e-30, -1e30, 1}, []float32{0, 0, 0, 0}
	if mae, _ := tallied(t, metrics.MAEMetric, 2, 1, y, p); mae != float64(y[0])/2 {
		t.Errorf("MAE is %v, want %v", mae, float64(y[0])/2)
	}
	// Targets of a mean of 2^24 and a deviation of 1, predicted with an error of 1: R² is 0.
	y, p = []float32{1<<24 - 2, 1 << 24, 1<<24 - 2, 1 << 24}, []float32{1<<24 - 1, 1<<24 - 1, 1<<24 - 1, 1<<24 - 1}
	if r2, _ := tallied(t, metrics.R2Metric, 2, 1, y, p); r2 != 0 {
		t.Errorf("R² is %v, want 0", r2)
	}
	if nmae, _ := tallied(t, metrics.NMAEMetric, 3, 1, y, p); nmae != 1 {
		t.Errorf("NMAE is %v, want 1", nmae)
	}
	equal := []float32{3, 3, 3}
	if r2, n := tallied(t, metrics.R2Metric, 1, 1, equal, equal); !math.IsNaN(r2) || n != 3 {
		t.Errorf("R² of equal targets is %v of %d, want NaN of 3", r2, n)
	}
	if mae, n := tallied(t, metrics.MAEMetric, 1, 2, []float32{nan32, nan32}, []float32{1, 2}); !math.IsNaN(mae) || n != 0 {
		t.Errorf("MAE of missing targets is %v of %d", mae, n)
	}
}

// The exact sum of random numbers of all magnitudes is that of package big, in any order.
func TestExactSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		x, y := make([]float32, 300), make([]float32, 300)
		want := new(big.Float).SetPrec(3000)
		for i := range x {
			y[i] = math.Float32frombits(rng.Uint32())
			if y[i] != y[i] || math.IsInf(float64(y[i]), 0) {
				y[i] = 0
			}
			want.Add(want, new(big.Float).SetFloat64(math.Abs(float64(y[i]))))
		}
		mean, _ := want.Quo(want, big.NewFloat(300)).Float64()
		for _, ranks := range []int{1, 5} {
			if mae, _ := tallied(t, metrics.MAEMetric, ranks, 1, y, x); mae != mean {
				t.Fatalf("the mean is %v, want %v", mae, mean)
			}
		}
	}
}
