package graphops

import (
	"math/rand/v2"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Reverses checks whether every edge has its reverse, in one pass over the edges in their order:
// it sums a hash of (source, destination) and subtracts that of (destination, source). The sum is 0
// if all edges have reverses, and otherwise with a probability of 2^-64; the secret key prevents
// constructed collisions.
type Reverses struct{ key uint64 }

// NewReverses returns a Reverses with a new key.
func NewReverses() Reverses { return Reverses{key: rand.Uint64()} }

// Of returns the sum over the edges into the nodes [from, to), on GOMAXPROCS threads.
func (o Reverses) Of(g *Graph, from, to int) (sum uint64) {
	const grain = 1 << 11
	parts := make([]uint64, parallel.Chunks(to-from, grain))
	parallel.For(0, to-from, grain, func(lo, hi int) {
		var part uint64
		for v := from + lo; v < from+hi; v++ {
			for _, u := range g.InNeighbors(int32(v)) {
				if int(u) != v {
					part += o.hash(uint64(u)<<32|uint64(v)) - o.hash(uint64(v)<<32|uint64(u))
				}
			}
		}
		parts[lo/grain] = part
	})
	for _, part := range parts {
		sum += part
	}
	return sum
}

// hash applies MurmurHash3's finalizer twice, with a key.
func (o Reverses) hash(x uint64) uint64 {
	return mix64(mix64(x^o.key) + o.key)
}

func mix64(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
