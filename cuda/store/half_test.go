package store

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// fromHalf is the value of an f16.
func fromHalf(h uint16) float32 {
	m, e := float64(h&0x3ff), int(h>>10&31)
	switch e {
	case 31:
		m = math.Inf(1)
		if h&0x3ff != 0 {
			return float32(math.NaN())
		}
	case 0:
		m = math.Ldexp(m, -24)
	default:
		m = math.Ldexp(m+1024, e-25)
	}
	if h>>15 != 0 {
		m = -m
	}
	return float32(m)
}

// Every f16 is itself, what lies between two goes to the nearer, and ties to the
// even one.
func TestToHalf(t *testing.T) {
	for h := range uint32(1 << 16) {
		x := fromHalf(uint16(h))
		if got := toHalf(x); got != uint16(h) && x == x {
			t.Fatalf("%#x, which is %g, becomes %#x", h, x, got)
		} else if x != x && (got&0x7c00 != 0x7c00 || got&0x3ff == 0) {
			t.Fatalf("a NaN becomes %#x", got)
		}
		if h&0x7fff >= 0x7bff {
			continue // no finite number follows
		}
		next := fromHalf(uint16(h + 1))
		tie := float32((float64(x) + float64(next)) / 2) // exact: 12 bits
		even := uint16(h + h&1)
		away := float32(math.Inf(1))
		if x < 0 || math.Signbit(float64(x)) {
			away = -away
		}
		for _, c := range []struct {
			x    float32
			want uint16
		}{{tie, even}, {math.Nextafter32(tie, 0), uint16(h)}, {math.Nextafter32(tie, away), uint16(h + 1)}} {
			if got := toHalf(c.x); got != c.want {
				t.Fatalf("%g becomes %#x, not %#x", c.x, got, c.want)
			}
		}
	}
	for x, want := range map[float32]uint16{65519.996: 0x7bff, 65520: 0x7c00, -1e30: 0xfc00, float32(math.Inf(1)): 0x7c00, 1e-30: 0, -1e-30: 0x8000} {
		if got := toHalf(x); got != want {
			t.Errorf("%g becomes %#x, not %#x", x, got, want)
		}
	}
}

func TestHottest(t *testing.T) {
	// Out-degrees: node 0 has 2, 1 has none, 2 has 3, 3 has 2, 4 has 1.
	g := &graphops.Graph{Indptr: []int64{0, 2, 4, 8, 8, 8}, Indices: []int32{0, 2, 2, 3, 0, 2, 3, 4}}
	for n, want := range [][]int32{{}, {2}, {0, 2}, {0, 2, 3}, {0, 2, 3, 4}, {0, 1, 2, 3, 4}} {
		got := hottest(g, n)
		if len(got) != len(want) {
			t.Fatalf("%d: %v, not %v", n, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d: %v, not %v", n, got, want)
			}
		}
	}
}
