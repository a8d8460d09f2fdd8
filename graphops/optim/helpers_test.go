package optim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func normal(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// wantError checks that err is a misuse, or a plain error, and that its text has all parts.
func wantError(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			tb.Errorf("the error is %q, want %q in it", err, p)
		}
	}
}

// near fails if got differs from want by more than abs + rel·|want|.
func near(tb testing.TB, what string, got []float32, want []float64, abs, rel float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= abs+rel*math.Abs(want[i])) {
			tb.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

func sameBits(tb testing.TB, what string, a, b []float32) {
	tb.Helper()
	if len(a) != len(b) {
		tb.Fatalf("%s: %d and %d elements", what, len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			tb.Fatalf("%s: element %d is %v and %v", what, i, a[i], b[i])
		}
	}
}
