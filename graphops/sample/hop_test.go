package sample

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/philox"
)

// Each of the C(n, k) subsets is equally likely: a chi-square test over the nodes 0, 1, 2, … with a
// fixed seed.
func TestUniformIsUniform(t *testing.T) {
	cases := []struct {
		n, k, subsets int
		limit         float64 // 99.9th percentile of chi-square with subsets-1 degrees of freedom
	}{
		{5, 1, 5, 18.47},
		{5, 2, 10, 27.88},
		{6, 3, 20, 43.82},
		{7, 6, 7, 22.46},
		{8, 4, 70, 111.06},
	}
	for _, c := range cases {
		counts := map[uint64]int{}
		h := Hop{seed: 2024, c3: philox.C3(philox.Sample, 0, 0)}
		const each = 400
		var out []int32
		for v := range each * c.subsets {
			h.At(int32(v))
			out = h.Uniform(c.n, c.k, out[:0])
			set := uint64(0)
			for _, p := range out {
				set |= 1 << p
			}
			counts[set]++
		}
		chi := 0.0
		for _, got := range counts {
			d := float64(got - each)
			chi += d * d / each
		}
		if len(counts) != c.subsets || chi > c.limit {
			t.Errorf("%d of %d: %d different subsets, want %d; chi-square %.1f, limit %.1f", c.k, c.n, len(counts), c.subsets, chi, c.limit)
		}
	}
}

// Large picks use another algorithm with the same result, and leave no bit set in its bit set.
func TestUniformBothWays(t *testing.T) {
	h := Hop{seed: 5}
	for n := 50; n < 3000; n += 97 {
		for _, k := range []int{1, 7, linearPicks - 1, linearPicks, linearPicks + 1, n - 1} {
			h.At(int32(n))
			got := h.Uniform(n, k, []int32{-9, -8})
			h.At(int32(n))
			want := h.uniformMany(n, k, []int32{-9, -8})
			if !slices.Equal(got, want) || got[0] != -9 || got[1] != -8 {
				t.Fatalf("%d of %d: %v, want %v", k, n, got, want)
			}
			if i := slices.IndexFunc(h.seen, func(w uint64) bool { return w != 0 }); i >= 0 {
				t.Fatalf("%d of %d: word %d of the bit set was left set", k, n, i)
			}
		}
	}
}

// A second call of Uniform uses new draws; picking all positions uses no draw.
func TestUniformDraws(t *testing.T) {
	h := Hop{seed: 5}
	h.At(3)
	h.Uniform(100, -1, nil)
	h.Uniform(100, 100, nil)
	h.Uniform(0, 5, nil)
	h.Uniform(10, 3, nil)
	s := philox.NewStream(5, 3, 0, 0)
	for range 3 {
		s.Next()
	}
	if got, want := h.Next(), s.Next(); got != want {
		t.Errorf("the draw after a pick of 3 is %#x, want draw 3, %#x", got, want)
	}
}
