package graphops

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// RMATDraw are the parameters of [DrawRMAT].
type RMATDraw struct {
	Scale   int     // there are 2^Scale nodes; 1 to 31
	Edges   int     // to draw
	A, B, C float64 // probabilities of quadrants, in sum at most 1
	Key     uint64  // random seed
	Threads int     // 0: GOMAXPROCS; it does not change the result
	// Progress, if not nil, is called from any of the threads with the number of edges that it draws
	// next. If it returns false these edges stay 0 → 0.
	Progress func(edges int) bool
}

// Purposes of the draws of an R-MAT graph.
const (
	rmatEdge = 64 + iota
	rmatLabel
)

// DrawRMAT draws edges src[i] → dst[i] of an R-MAT graph, with self-loops and duplicates. Each edge falls
// into one quadrant of the adjacency matrix: with probability A source and destination are both in the
// lower half, with B only the source, with C only the destination, otherwise neither; and so on within
// that quadrant, Scale times. number maps the numbers that the recursion gives to the ids of nodes, by a
// bijection that Key determines, so that an id says nothing about a node's degree.
//
// The result depends on the parameters alone, bit for bit. Source: D. Chakrabarti, Y. Zhan, C. Faloutsos,
// R-MAT: a recursive model for graph mining, SDM 2004, doi:10.1137/1.9781611972740.43.
func DrawRMAT(o RMATDraw) (src, dst []int32, number func(v uint32) int32) {
	r, n := newRenumbering(o.Key, o.Scale), o.Edges
	src, dst = make([]int32, n), make([]int32, n)
	// Bounds of the quadrants on [0, 2^32): a draw below the first is in A.
	bound := func(p float64) uint64 { return uint64(math.Round(min(p, 1) * (1 << 32))) }
	ab, abc := bound(o.A+o.B), bound(o.A+o.B+o.C)
	a := min(bound(o.A), ab)
	parallel.For(o.Threads, n, 1<<14, func(lo, hi int) {
		if o.Progress != nil && !o.Progress(hi-lo) {
			return
		}
		for e := lo; e < hi; e++ {
			c := philox.Counter(int64(e), 0, philox.C3(philox.User, rmatEdge, 0))
			var u, v uint32
			for level := 0; level < o.Scale; level += 4 {
				draws := philox.Block(o.Key, c)
				for _, r := range draws[:min(4, o.Scale-level)] {
					x := uint64(r)
					// Without branches, which would be mispredicted half the time: the
					// destination's bit is 1 in B and D, the source's in C and D.
					inA, inAB, inABC := (x-a)>>63, (x-ab)>>63, (x-abc)>>63
					u = u<<1 | uint32(inAB^1)
					v = v<<1 | uint32((inA^inAB)|(inABC^1))
				}
				c[1]++ // moves to the next block of draws
			}
			src[e], dst[e] = int32(r.of(u)), int32(r.of(v))
		}
	})
	return src, dst, func(v uint32) int32 { return int32(r.of(v)) }
}

// renumbering is a bijection of [0, 2^scale).
type renumbering struct {
	shift int
	mask  uint32
	add   [3]uint32
	mul   [3]uint32
}

func newRenumbering(key uint64, scale int) renumbering {
	r := renumbering{shift: (scale + 1) / 2, mask: 1<<scale - 1}
	u := philox.NewStream(key, 0, 0, philox.C3(philox.User, rmatLabel, 0))
	for i := range r.add {
		r.add[i], r.mul[i] = u.Next(), u.Next()|1
	}
	return r
}

// of adds, multiplies by an odd number and folds the high half onto the low one; each of these
// steps can be inverted modulo 2^scale.
func (r *renumbering) of(v uint32) uint32 {
	for i := range r.add {
		v = (v + r.add[i]) * r.mul[i] & r.mask
		v ^= v >> r.shift
	}
	return v
}
