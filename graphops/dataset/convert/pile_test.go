package convert

import "testing"

func TestPile(t *testing.T) {
	for _, n := range []int{0, 1, 2, pileChunk - 1, pileChunk, pileChunk + 1, 3*pileChunk + 7} {
		var p pile[int32]
		for i := range n {
			p.add(int32(i))
		}
		if p.n != n {
			t.Errorf("%d of %d elements", p.n, n)
		}
		xs := p.flat()
		if len(xs) != n || cap(xs) != n || p.n != 0 || n == 0 && xs != nil {
			t.Fatalf("%d elements of room for %d, %d left; want %d", len(xs), cap(xs), p.n, n)
		}
		for i, x := range xs {
			if int(x) != i {
				t.Fatalf("element %d of %d is %d", i, n, x)
			}
		}
	}
}
