package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cosineRows are frequencies, phases and times of all sizes, and the special ones.
func cosineRows(n int) (w, b, times []float64) {
	r := rand.New(rand.NewPCG(3, 4))
	w, b = make([]float64, n), make([]float64, n)
	for j := range w {
		w[j], b[j] = math.Pow(10, -9*r.Float64())*(1-2*float64(j%2)), r.NormFloat64()
	}
	return w, b, []float64{0, 1, -1, 0.25, 0.5, 3600, 86400, -86401, 1 << 24, 1e8, -1e8, 3e-9}
}

// Cosines are those of math.Cos, for small and for large angles.
func TestCosinesAreExact(t *testing.T) {
	const n = 301
	w, b, times := cosineRows(n)
	onPaths(t, func(t *testing.T) {
		o := make([]float32, n)
		worst := 0.0
		for _, at := range times {
			Cosines(o, w, b, at)
			for j, got := range o {
				_, turn := math.Modf(at*w[j] + b[j])
				worst = max(worst, math.Abs(float64(got)-math.Cos(2*math.Pi*turn)))
			}
		}
		t.Logf("the largest error is %.2g", worst)
		if worst > 3e-7 { // 2⁻²⁵ of a turn, and rounding
			t.Errorf("the largest error is %v", worst)
		}
		Cosines(o[:4], []float64{1, 1, 1, math.Inf(1)}, []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}, 2)
		for j, got := range o[:4] {
			if got == got {
				t.Errorf("the cosine of angle %d, which is not finite, is %v", j, got)
			}
		}
	})
}

// Every path gives the bits of the plain one, for rows of any length, and writes nothing beside them.
func TestCosinesPaths(t *testing.T) {
	for _, n := range sizes {
		w, b, times := cosineRows(n)
		w, b = append(w, math.NaN(), math.Inf(1)), append(b, 0, 1)
		want := make([]float32, n+2)
		for _, at := range times {
			before := Use(Go)
			Cosines(want, w, b, at)
			Use(before)
			onPaths(t, func(t *testing.T) {
				got := guarded(make([]float32, n+2))
				Cosines(got, w, b, at)
				sameBits(t, "cosines", n+2, got, want)
			})
		}
	}
}

func BenchmarkCosines(b *testing.B) {
	w, p, _ := cosineRows(100)
	o := make([]float32, 100)
	for b.Loop() {
		Cosines(o, w, p, 12345)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/element")
}
