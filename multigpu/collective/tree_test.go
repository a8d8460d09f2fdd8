package collective

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func randomSlots(count, n int) [][]float32 {
	s := make([][]float32, count)
	x := uint64(count*1_000_003 + n)
	for k := range s {
		s[k] = make([]float32, n)
		for i := range s[k] {
			x = x*6364136223846793005 + 1442695040888963407
			s[k][i] = float32(int32(x>>32)) * float32(math.Ldexp(1, int(x>>27&31)-40))
		}
	}
	return s
}

// Five slots computed by hand: in any other order of additions these values give other bits.
func TestReduceTreeByHand(t *testing.T) {
	a, b, c, d, e := float32(1e8), float32(-1e8), float32(3), float32(0.25), float32(1e-3)
	got := ReduceTree([][]float32{{a}, {c}, {b}, {d}, {e}})[0]
	ac, bd := a+c, b+d
	sum := ac + bd
	if want := sum + e; got != want {
		t.Errorf("got %v, want ((0+1)+(2+3))+4 = %v", got, want)
	}
	if ReduceTree(nil) != nil {
		t.Error("reducing no slots gave a sum")
	}
}

func TestTreeMatchesReduceTree(t *testing.T) {
	for count := 1; count <= 9; count++ {
		for _, n := range []int{0, 1, 31, treeBlock, 1_000_003} {
			if testing.Short() && n > treeBlock && count != 5 {
				continue
			}
			t.Run(fmt.Sprintf("%d slots of %d", count, n), func(t *testing.T) {
				slots := randomSlots(count, n)
				want, got := ReduceTree(slots), make([]float32, n)
				all := joinSlots(count)
				for rank := range 3 {
					lo, hi := Share(n, rank, 3)
					all.sum(got, slots, lo, hi)
				}
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
					}
				}
			})
		}
	}
}

// Reducing does not change its inputs, and a sum of small integers is exact in any order.
func TestTreeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count, n := rapid.IntRange(1, 20).Draw(t, "slots"), rapid.IntRange(0, 3000).Draw(t, "n")
		slots, want := make([][]float32, count), make([]float32, n)
		for k := range slots {
			slots[k] = make([]float32, n)
			for i := range slots[k] {
				slots[k][i] = float32((k*31+i*17)%1000 - 500)
				want[i] += slots[k][i]
			}
		}
		got := make([]float32, n)
		joinSlots(count).sum(got, slots, 0, n)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
			}
		}
		for k := range slots {
			for i, x := range slots[k] {
				if x != float32((k*31+i*17)%1000-500) {
					t.Fatalf("slot %d was changed", k)
				}
			}
		}
	})
}

func TestShareCoversAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, world := rapid.IntRange(0, 1<<40).Draw(t, "n"), rapid.IntRange(1, 64).Draw(t, "world")
		at := 0
		for r := range world {
			lo, hi := Share(n, r, world)
			if lo != at || hi < lo || hi-lo > n/world+1 {
				t.Fatalf("rank %d of %d has [%d, %d) of %d after %d", r, world, lo, hi, n, at)
			}
			at = hi
		}
		if at != n {
			t.Fatalf("shares end at %d of %d", at, n)
		}
	})
}

func BenchmarkTree(b *testing.B) {
	for _, count := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("slots=%d/n=200000", count), func(b *testing.B) {
			slots, dst := randomSlots(count, 200_000), make([]float32, 200_000)
			all := joinSlots(count)
			for b.Loop() {
				all.sum(dst, slots, 0, len(dst))
			}
			b.ReportMetric(float64(b.N)*float64(len(dst)*(count+1)*4)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}
