package plane

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Ids are sorted, few and many, small and up to the largest.
func TestAscending(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 255, 256, 5000} {
		for _, below := range []int32{1, 2000, 1 << 12, 1 << 23, math.MaxInt32} {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = rng.Int32N(below)
			}
			want := slices.Sorted(slices.Values(ids))
			if ascending(ids); !slices.Equal(ids, want) {
				t.Errorf("%d ids below %d are not sorted", n, below)
			}
		}
	}
}
