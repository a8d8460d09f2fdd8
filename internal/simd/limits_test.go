package simd

import "testing"

func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for threads := 1; threads <= 2; threads++ {
		if r := CopyGBs(threads); r <= 0 {
			t.Errorf("%d threads copy %g GB/s", threads, r)
		}
		if r := RandomRowGBs(threads, 512); r <= 0 {
			t.Errorf("%d threads read %g GB/s of random rows", threads, r)
		}
		if c, r := QuickGBs(threads, 512); c <= 0 || r <= 0 {
			t.Errorf("in a hurry, %d threads copy %g GB/s and read %g GB/s of random rows", threads, c, r)
		}
	}
}
