package graphops

import (
	"math"
	"testing"
)

// At each level, the quadrants' shares of the edges equal the probabilities.
func TestRMATQuadrants(t *testing.T) {
	o := RMATDraw{Scale: 9, Edges: 51200, A: 0.4, B: 0.3, C: 0.1, Key: 5, Threads: 2}
	src, dst, number := DrawRMAT(o)
	back := make([]int32, 1<<o.Scale) // the numbers of the recursion
	for v := range back {
		back[number(uint32(v))] = int32(v)
	}
	for i := range src {
		src[i], dst[i] = back[src[i]], back[dst[i]]
	}
	for level := range o.Scale {
		var share [4]float64
		for i := range src {
			share[src[i]>>level&1*2|dst[i]>>level&1] += 1 / float64(len(src))
		}
		for q, want := range []float64{0.4, 0.3, 0.1, 0.2} {
			// The bound is six standard deviations of a share of 51200 draws.
			if math.Abs(share[q]-want) > 6*math.Sqrt(want*(1-want)/float64(len(src))) {
				t.Errorf("level %d: quadrant %d has %.4f of the edges, want %v", level, q, share[q], want)
			}
		}
	}
}

func TestRenumberingIsABijection(t *testing.T) {
	for scale := 1; scale <= 12; scale++ {
		r := newRenumbering(uint64(scale)*77, scale)
		seen := make([]bool, 1<<scale)
		for v := range seen {
			u := r.of(uint32(v))
			if int(u) >= len(seen) || seen[u] {
				t.Fatalf("scale %d: %d is mapped to %d, as another id is", scale, v, u)
			}
			seen[u] = true
		}
	}
}
