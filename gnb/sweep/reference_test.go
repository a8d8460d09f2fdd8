package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// goptunas is the output of testdata/goptuna; see there.
func goptunas(t *testing.T) (v struct {
	Dims, Count int
	Points      [][]float64
	SHA256      string
	Estimators  []struct{ Observations, Ages, Mus, Sigmas, Weights []float64 }
},
) {
	t.Helper()
	text, err := os.ReadFile("testdata/goptuna.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The sequence equals goptuna's, which omits the origin.
func TestSobolIsGoptunas(t *testing.T) {
	want, ours := goptunas(t), newSobolPoints()
	if want.Dims != sobolDims || want.Count < 5000 {
		t.Fatalf("the reference has %d points in %d dimensions", want.Count, want.Dims)
	}
	sum := sha256.New()
	for n := range want.Count + 1 {
		for dim := range sobolDims {
			x, ok := ours.at(n, dim)
			switch {
			case !ok || n == 0 && x != 0:
				t.Fatalf("coordinate %d of point %d is %d, %v", dim, n, x, ok)
			case n > 0 && n <= len(want.Points) && float64(x)/(1<<32) != want.Points[n-1][dim]:
				t.Fatalf("coordinate %d of point %d is %v, want %v", dim, n, float64(x)/(1<<32), want.Points[n-1][dim])
			case n > 0:
				_ = binary.Write(sum, binary.LittleEndian, x) // never fails
			}
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != want.SHA256 {
		t.Errorf("the digest of %d points is %s, want %s", want.Count, got, want.SHA256)
	}
	if _, ok := ours.at(1, sobolDims); ok {
		t.Errorf("the sequence accepts more than %d dimensions", sobolDims)
	}
}

// In each dimension, the first 2^k points lie in different ones of 2^k equal intervals.
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

// The densities equal goptuna's Parzen estimators. Weights may differ in the last digit, because
// goptuna adds them with vector instructions if the processor has them.
func TestMixtureIsGoptunas(t *testing.T) {
	for _, want := range goptunas(t).Estimators {
		got, n := newMixture(want.Observations), len(want.Observations)
		if !slices.Equal(ages(n), want.Ages) {
			t.Fatalf("%d observations: weights by age are %v, want %v", n, ages(n), want.Ages)
		}
		if !slices.Equal(got.mus, want.Mus) || !slices.Equal(got.sigmas, want.Sigmas) {
			t.Fatalf("observations %v: components %v and %v, want %v and %v", want.Observations, got.mus, got.sigmas, want.Mus, want.Sigmas)
		}
		if !slices.EqualFunc(got.weights, want.Weights, func(a, b float64) bool { return math.Abs(a-b) <= 1e-15 }) {
			t.Fatalf("observations %v: weights %v, want %v", want.Observations, got.weights, want.Weights)
		}
	}
}
