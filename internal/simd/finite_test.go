package simd

import (
	"math"
	"testing"
)

// Every path finds a single NaN or infinity at any position and accepts large, tiny and zero
// numbers.
func TestFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	defer Use(Use(Best()))
	for _, path := range []Path{Go, AVX2, AVX512} {
		if path > Best() {
			continue
		}
		Use(path)
		for _, n := range []int{0, 1, 7, 16, 33, 1000, finiteChunk - 1, finiteChunk, finiteChunk + 5, 3 * finiteChunk} {
			x := make([]float32, n)
			for i := range x {
				x[i] = []float32{0, 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1e19, -3e-38}[i%8]
			}
			if !Finite(x) || NotFinite(x) != -1 {
				t.Fatalf("%v: %d finite elements are reported as not finite", path, n)
			}
			for _, at := range []int{0, 1, n / 2, n - 2, n - 1, finiteChunk - 1, finiteChunk} {
				if at < 0 || at >= n {
					continue
				}
				for _, v := range []float32{nan, -nan, inf, -inf} {
					old := x[at]
					x[at] = v
					if Finite(x) || NotFinite(x) != at {
						t.Errorf("%v: %v at %d of %d is not found", path, v, at, n)
					}
					x[at] = old
				}
			}
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	x := make([]float32, 1<<17)
	for i := range x {
		x[i] = float32(i%100) / 10
	}
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		if !Finite(x) {
			b.Fatal("not finite")
		}
	}
}
