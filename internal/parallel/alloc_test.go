//go:build !race

package parallel

import "testing"

// The race detector makes a sync.Pool forget at random, so this is not for it.
func TestForAllocatesNothing(t *testing.T) {
	var n [64]int
	body := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			n[i]++
		}
	}
	if a := testing.AllocsPerRun(1000, func() { For(2, len(n), 4, body) }); a >= 1 {
		t.Errorf("For allocates %.1f times a call", a)
	}
}
