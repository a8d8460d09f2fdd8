package sample

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

var _ Picker = Weighted{}

// Weighted is the [Picker] of weighted sampling without replacement: at hop h a node takes
// Fanouts[h] of its in-edges by [Hop.Weighted] of the edges' weights (Config.Weights, or the
// graph's), or all of them if it has no more or the fanout is -1. It never takes edges of weight 0, which
// the sampler leaves out. Fanouts is in PyG's order, as [Fanouts] is.
type Weighted struct{ Fanouts Fanouts }

// Hops is the number of fanouts.
func (w Weighted) Hops() int { return len(w.Fanouts) }

// Pick implements [Picker].
func (w Weighted) Pick(h *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	k := w.Fanouts[h.Index]
	if k < 0 || k >= len(nbrs) {
		return h.Uniform(len(nbrs), k, out)
	}
	return h.Weighted(h.Weights(), k, out)
}

// Weighted appends k of the positions 0 to len(weights)-1 to out, ascending. It chooses them one
// after another without replacement, with probabilities proportional to the remaining weights: the
// distribution of Efraimidis' and Spirakis' keys. Positions of weight 0 are not picked, so there
// may be fewer than k. If k is negative or not below len(weights), it appends all positions whose
// weight is not 0 and draws nothing.
//
// The computation uses integers only. A weight m·2^e (m of 24 bits) counts as the integer max(1,
// ⌊m·2^(e-s)⌋), where s is such that the largest weight has 62-L bits and L is the bit length of
// len(weights): the sum fits 62 bits, and weights above 2^(L-38) of the largest are exact (2^-14
// for 16 million edges). Each pick takes two draws, r = ⌊(first·2^32 + second)·S / 2^64⌋ with S the
// sum of the remaining weights, and is the first position where their running sum exceeds r.
//
// It panics for a weight that is negative, infinite or NaN; a sampler returns this as a
// [*PickError]. Cost: O(n + k·log n).
//
// Source: P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir",
// Information Processing Letters 97, 2006, doi:10.1016/j.ipl.2005.11.003.
func (h *Hop) Weighted(weights []float32, k int, out []int32) []int32 {
	n := len(weights)
	if k < 0 || k >= n {
		for i, w := range weights {
			if w != 0 {
				out = append(out, int32(i))
			}
		}
		return out
	}
	top := float32(0)
	for i, w := range weights {
		if !(w >= 0) || w > math.MaxFloat32 {
			panic(fmt.Errorf("edge %d of the node (counted from 0) has weight %v, but sampling weights must be finite and not negative", i, w))
		}
		top = max(top, w)
	}
	if top == 0 {
		return out
	}
	first := len(out)
	_, e := mantissa(top)
	shift := e - (62 - bits.Len(uint(n)) - 24)
	// tree is a Fenwick tree: node i (from 1) holds the sum of the i&-i positions
	// that end with position i-1.
	h.tree = resize(h.tree, n+1)
	t := h.tree
	t[0] = 0
	var sum uint64
	for i, w := range weights {
		t[i+1] = fixed(w, shift)
		sum += t[i+1]
	}
	for i := 1; i <= n; i++ {
		if up := i + i&-i; up <= n {
			t[up] += t[i]
		}
	}
	half := 1 << (bits.Len(uint(n)) - 1)
	for range k {
		if sum == 0 {
			break
		}
		u := uint64(h.Next()) << 32
		r, _ := bits.Mul64(u|uint64(h.Next()), sum)
		at := 0
		for step := half; step > 0; step /= 2 {
			if next := at + step; next <= n && t[next] <= r {
				at = next
				r -= t[next]
			}
		}
		out = append(out, int32(at))
		w := fixed(weights[at], shift)
		sum -= w
		for i := at + 1; i <= n; i += i & -i {
			t[i] -= w
		}
	}
	slices.Sort(out[first:])
	return out
}

// mantissa is w = m·2^e for a finite w >= 0, with m of 24 bits at most.
func mantissa(w float32) (m uint64, e int) {
	b := math.Float32bits(w)
	if e = int(b >> 23); e == 0 {
		// A subnormal has the exponent of the smallest normal number.
		m = uint64(b)
		up := 24 - bits.Len64(m)
		return m << up, -149 - up
	}
	return uint64(b&(1<<23-1) | 1<<23), e - 150
}

// fixed is w as an integer multiple of 2^shift, at least 1 where w is positive.
func fixed(w float32, shift int) uint64 {
	if w == 0 {
		return 0
	}
	m, e := mantissa(w)
	if by := e - shift; by >= 0 {
		return m << by
	} else if by > -64 {
		return max(1, m>>-by)
	}
	return 1
}
