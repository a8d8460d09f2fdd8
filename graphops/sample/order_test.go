package sample_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

func TestEpochOrder(t *testing.T) {
	ids := []int32{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	want := slices.Clone(ids)
	for i := 9; i >= 1; i-- {
		u := philox.Block(77, [4]uint32{uint32(i), 0, 0, 0<<28 | 4})[0]
		j := uint64(u) * uint64(i+1) >> 32
		want[i], want[j] = want[j], want[i]
	}
	if got := sample.EpochOrder(77, 4, ids); !slices.Equal(got, want) {
		t.Errorf("EpochOrder = %v, want %v", got, want)
	}
	if ids[0] != 10 || !slices.IsSorted(ids) {
		t.Errorf("the argument was changed to %v", ids)
	}
	for _, n := range []int{0, 1} {
		if got := sample.EpochOrder(1, 0, ids[:n]); !slices.Equal(got, ids[:n]) {
			t.Errorf("the order of %d ids is %v", n, got)
		}
	}
	orders := map[string]bool{}
	for _, seed := range []uint64{1, 2, 1 << 32} {
		for _, epoch := range []int{0, 1, 2, 1 << 20, 2 << 20, 1<<20 + 1} {
			orders[fmt.Sprint(sample.EpochOrder(seed, epoch, all(50)))] = true
		}
	}
	if len(orders) != 18 {
		t.Errorf("18 seeds and epochs have %d different orders", len(orders))
	}
}

func TestEpochOrderIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 500).Draw(t, "n")
		got := sample.EpochOrder(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 1<<20-1).Draw(t, "epoch"), all(n))
		slices.Sort(got)
		if !slices.Equal(got, all(n)) {
			t.Fatalf("not a permutation: %v", got)
		}
	})
}

// Each id is equally likely to come first: chi-square with 9 degrees of freedom,
// 99.9th percentile.
func TestEpochOrderIsUniform(t *testing.T) {
	const epochs = 5000
	var first [10]int
	for epoch := range epochs {
		first[sample.EpochOrder(3, epoch, all(10))[0]]++
	}
	chi := 0.0
	for _, n := range first {
		d := float64(n) - epochs/10
		chi += d * d / (epochs / 10)
	}
	if chi > 27.88 {
		t.Errorf("chi-square %.1f, limit 27.88: %v", chi, first)
	}
}

func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, world := rapid.IntRange(0, 1<<40).Draw(t, "n"), rapid.IntRange(1, 1000).Draw(t, "world")
		at := 0
		for r := range world {
			lo, hi := sample.Share(n, r, world)
			if lo != at || hi-lo < n/world || hi-lo > (n+world-1)/world {
				t.Fatalf("rank %d takes [%d, %d), but the previous rank's share ends at %d", r, lo, hi, at)
			}
			at = hi
		}
		if at != n {
			t.Fatalf("the shares end at %d of %d", at, n)
		}
	})
	if lo, hi := sample.Share(10, 1, 3); lo != 3 || hi != 6 {
		t.Errorf("rank 1 of 3 takes [%d, %d) of 10, want [3, 6)", lo, hi)
	}
}
