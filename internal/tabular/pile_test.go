package tabular

import (
	"testing"
)

func TestPile(t *testing.T) {
	for _, n := range []int{0, 1, 2, pileChunk - 1, pileChunk, pileChunk + 1, 3*pileChunk + 7} {
		var p Pile[int32]
		for i := range n {
			p.Add(int32(i))
		}
		if p.N != n {
			t.Errorf("%d of %d elements", p.N, n)
		}
		xs := p.Flat()
		if len(xs) != n || cap(xs) != n || p.N != 0 || n == 0 && xs != nil {
			t.Fatalf("%d elements of room for %d, %d left; want %d", len(xs), cap(xs), p.N, n)
		}
		for i, x := range xs {
			if int(x) != i {
				t.Fatalf("element %d of %d is %d", i, n, x)
			}
		}
	}
}
