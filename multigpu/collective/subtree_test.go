package collective

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestSubtrees(t *testing.T) {
	for _, c := range []struct {
		lo, hi, n int
		want      []span
	}{
		{0, 8, 8, []span{{0, 8}}},
		{0, 4, 8, []span{{0, 4}}},
		{4, 8, 8, []span{{4, 8}}},
		{1, 8, 8, []span{{1, 2}, {2, 4}, {4, 8}}},
		{3, 6, 6, []span{{3, 4}, {4, 6}}}, // the sum of slots 4 and 5 moves up one level
		{0, 3, 6, []span{{0, 2}, {2, 3}}},
		{4, 5, 5, []span{{4, 5}}},
		{2, 5, 5, []span{{2, 4}, {4, 5}}},
		{0, 5, 5, []span{{0, 5}}},
		{3, 3, 5, nil},
	} {
		if got := subtrees(nil, c.lo, c.hi, c.n); !slices.Equal(got, c.want) {
			t.Errorf("slots %d to %d of %d: %v, want %v", c.lo, c.hi, c.n, got, c.want)
		}
	}
}

// For any division of the slots, the joined sums of subtrees have the bits of ReduceTree.
func TestJoins(t *testing.T) {
	const n = treeBlock + 77
	for slots := 1; slots <= 24; slots++ {
		all := make([][]float32, slots)
		for k := range all {
			all[k] = make([]float32, n)
			for i := range all[k] {
				h := (uint32(k*7919+i) + 1) * 2654435761
				all[k][i] = math.Float32frombits(h&0x807fffff | (119+h>>23&15)<<23)
			}
		}
		want := ReduceTree(all)
		for size := 1; size <= slots; size++ { // number of slots of a rank
			t.Run(fmt.Sprintf("%d by %d", slots, size), func(t *testing.T) {
				var spans []span
				var sums [][]float32
				for lo := 0; lo < slots; lo += size {
					for _, s := range subtrees(nil, lo, min(lo+size, slots), slots) {
						spans = append(spans, s)
						sum := make([]float32, n)
						joinSlots(s.hi-s.lo).sum(sum, all[s.lo:s.hi], 0, n)
						sums = append(sums, sum)
					}
				}
				got := make([]float32, n)
				newJoins(spans, slots).sum(got, sums, 0, n)
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
					}
				}
			})
		}
	}
}
