//go:build !race

package gemm

import (
	"sync/atomic"
	"testing"
)

// The test is left out under the race detector, which makes pools drop objects at random.
func TestMultiplyAllocatesNothing(t *testing.T) {
	const m, n, k = 300, 64, 64
	a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	var rows atomic.Int64
	hook := func(lo, hi int) { rows.Add(int64(hi - lo)) }
	for _, tA := range []bool{false, true} {
		stride := k
		if tA {
			stride = m
		}
		allocs := testing.AllocsPerRun(50, func() {
			Multiply(m, n, c, n, []Term{{K: k, A: Operand{Data: a, Stride: stride, Trans: tA}, B: Operand{Data: b, Stride: n}}},
				Options{Threads: 1, Before: hook, After: hook})
		})
		if allocs > 0.5 {
			t.Errorf("tA=%v: %v allocations a call", tA, allocs)
		}
	}
}
