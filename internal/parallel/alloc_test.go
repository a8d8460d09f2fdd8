//go:build !race

package parallel

import "testing"

// The test is left out under the race detector, which makes a sync.Pool drop objects at random.
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
