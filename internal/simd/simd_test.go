package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sizes holds lengths around all vector widths and unrolled loops, and primes.
var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 23, 31, 32, 33, 40, 47, 48, 63, 64, 65, 97, 100, 127, 128, 129, 191, 192, 193, 255, 256, 257, 300, 509, 512, 521}

// fewSizes returns sizes or, with -short, every third of them, for tests with many cases per size.
func fewSizes() []int {
	if !testing.Short() {
		return sizes
	}
	var few []int
	for i := 0; i < len(sizes); i += 3 {
		few = append(few, sizes[i])
	}
	return few
}

// onPaths runs f on every path that the processor has.
func onPaths(t *testing.T, f func(t *testing.T)) {
	for p := Go; p <= Best(); p++ {
		t.Run(p.String(), func(t *testing.T) {
			defer Use(Use(p))
			f(t)
		})
	}
}

func TestPath(t *testing.T) {
	t.Logf("the best path is %v", Best())
	before := Use(Go)
	if before != Best() {
		t.Errorf("Use returned the earlier path %v, want the best, %v", before, Best())
	}
	if got := Use(AVX512 + 1); got != Go {
		t.Errorf("Use returned the earlier path %v, want %v", got, Go)
	}
	if got := Use(before); got != Best() {
		t.Errorf("Use of a path that does not exist selected %v, want %v", got, Best())
	}
}

// randoms returns n normally distributed numbers at an address shifted by off elements.
func randoms(r *rand.Rand, n, off int) []float32 {
	s := make([]float32, n+off)[off:]
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

var specials = []float32{
	0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.Float32frombits(0xffc00001), float32(math.Inf(1)), float32(math.Inf(-1)),
	1e-45, -1e-45, math.MaxFloat32, -math.MaxFloat32, 1, -1,
}

// withSpecials returns random numbers with special values among them.
func withSpecials(r *rand.Rand, n, off int) []float32 {
	s := randoms(r, n, off)
	for i := range s {
		if r.IntN(4) == 0 {
			s[i] = specials[r.IntN(len(specials))]
		}
	}
	return s
}

func testRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// guarded returns a copy of s with one more element before and after it, for [intact].
func guarded(s []float32) []float32 {
	g := make([]float32, len(s)+2)
	g[0], g[len(s)+1] = guard, guard
	copy(g[1:], s)
	return g[1 : len(s)+1]
}

const guard = 12345.678

// intact reports whether the elements around a guarded slice are unchanged.
func intact(s []float32) bool {
	s = s[:len(s)+1]
	return s[len(s)-1] == guard
}

// sameBits fails the test unless got and want agree to the bit; all NaN count as equal.
func sameBits(t *testing.T, what string, n int, got, want []float32) {
	t.Helper()
	if !intact(got) {
		t.Fatalf("%s, %d elements: the element after the slice was overwritten", what, n)
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s, %d elements: element %d is %g (%#x), want %g (%#x)", what, n, i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}
