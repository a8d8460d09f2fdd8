package sizes

import "testing"

func TestRounding(t *testing.T) {
	for n, want := range map[int64]int64{0: 512, 1: 512, 512: 512, 513: 1024} {
		if got := Round(n); got != want {
			t.Errorf("%d bytes are rounded to %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int64]int64{1 << 20: 1 << 20, 1<<20 + 512: 1<<20 + 1<<17, 106 << 20: 112 << 20, 112 << 20: 112 << 20} {
		if got := Batch(n); got != want {
			t.Errorf("a buffer of %d bytes takes %d, want %d", n, got, want)
		}
	}
}

func TestSegments(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		sizes []int64
		want  int64
	}{
		{nil, 0},
		{[]int64{512, mb}, 2 * mb},
		{[]int64{mb, mb, 512}, 4 * mb},
		{[]int64{3 * mb, 9 * mb, 8 * mb}, 20 * mb},
		{[]int64{9 * mb, 9 * mb, 9 * mb, 2 * mb}, 40 * mb},
		{[]int64{11*mb + 512, 512}, 14 * mb},
	} {
		if got := Segments(c.sizes); got != c.want {
			t.Errorf("buffers of %v take %d, want %d", c.sizes, got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		free  int64
		ranks int
		want  int64
	}{{20 << 30, 1, 19 << 30}, {80 << 30, 2, 76 << 30}, {10 << 30, 2, 9 << 30}, {1 << 30, 4, 768 << 20}, {0, 1, 0}} {
		if got := Limit(c.free, c.ranks); got != c.want {
			t.Errorf("of %d free bytes one of %d ranks takes %d, want %d", c.free, c.ranks, got, c.want)
		}
	}
}

// A hop whose fanout bounds its edges well has room for that many, another one for those that were sampled.
func TestHops(t *testing.T) {
	s := Sampler{Nodes: 1000, Edges: 50_000_000, Transpose: true}
	got := s.Hops(10, []int{5, -1, 1 << 23}, func(hop int) (int64, int64) { return int64(30 * hop), int64(700 * hop) })
	want := []Hop{{Fanout: 5, Destinations: 10, Edges: 50}, {Fanout: -1, Destinations: 60, Edges: 700}, {Fanout: 1 << 23, Destinations: 730, Edges: 1400}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("hop %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
