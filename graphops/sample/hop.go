package sample

import (
	"slices"

	"github.com/graphnb/graphnb/internal/philox"
)

// Hop gives a picker its position in the run and the random draws for that position. It is valid
// during the call that received it, and must not be shared between goroutines.
//
// Draws are a stream of 2^18 numbers of 32 bits for each id, by Philox with the counter (id, step,
// purpose, hop, epoch) under the run's seed or, with disjoint trees, under the tree's key. A [Picker] gets the stream of the node that it picks
// for; a [FrontierPicker] gets the stream of id 0. [Hop.At] switches to another id's stream.
type Hop struct {
	// Index is the hop, counted from the seeds: hop 0 picks for the seeds.
	Index int

	seed        uint64
	epoch, step int
	c3          uint32
	stream      philox.Stream
	strategy    strategy // of seeds with times
	halfLife    int64    // of takeByAge
	levels      *levels  // of this hop's sources, if Labor has computed them
	inEdgesOf
	hopScratch
}

// inEdgesOf is what a [Picker] sees of the node that it picks for, besides the sources of its in-edges.
type inEdgesOf struct {
	pos     int64   // of the node's first in-edge
	from    []int32 // the places of the edges among the node's in-edges; nil: all of them are there
	weights []float32
	times   []int64
	types   []uint16
	row     rowInTime // of seeds with times
}

// hopScratch is the memory that a Hop keeps from one hop to the next.
type hopScratch struct {
	seen          []uint64     // bits of the positions picked so far, all 0 between calls
	tree          []uint64     // of Weighted
	labor         laborScratch // of Labor
	asOf, without view         // of seeds with times, and of Excluding
	byType        []uint64     // of RelationFanouts
	ofType        []int32
	ofTimes       []int64
}

// Epoch is the batch's epoch.
func (h *Hop) Epoch() int { return h.epoch }

// Step is the batch's step in the epoch.
func (h *Hop) Step() int { return h.step }

// Position is the CSC position, in the graph, of the edge whose source is nbrs[i] of a [Picker]: edge weights and features
// are indexed by these positions.
func (h *Hop) Position(i int) int64 {
	if h.from != nil {
		i = int(h.from[i])
	}
	return h.pos + int64(i)
}

// Weights are the weights of the in-edges of the node that a [Picker] picks for, in the order of
// nbrs, or nil if the graph has no weights. The slice is the graph's own memory and must not be
// written to.
func (h *Hop) Weights() []float32 { return h.weights }

// Times are the times of the in-edges of the node that a [Picker] picks for, in the order of nbrs, or
// nil if the edges have none. The slice can be the graph's own memory and must not be written to.
func (h *Hop) Times() []int64 { return h.times }

// Types are the types of the in-edges of the node that a [Picker] picks for, in the order of nbrs, or nil
// if the edges have none: relation numbers of the graph's schema. The slice is the graph's own memory and
// must not be written to.
func (h *Hop) Types() []uint16 { return h.types }

// At moves to the first draw of an id. A picker that needs the same draws for a source whichever
// destination asks (layer-neighbour sampling) moves to the source's id; a frontier picker moves to
// the id of the node that it decides about.
func (h *Hop) At(id int32) { h.stream = philox.NewStream(h.seed, int64(id), h.step, h.c3) }

// Next returns the next draw, uniform over all 32-bit numbers. It panics after 2^18 draws of one
// id.
func (h *Hop) Next() uint32 { return h.stream.Next() }

// Bounded returns the next draw, mapped to [0, n) as (u·n)>>32.
func (h *Hop) Bounded(n int) int { return int(philox.Bounded(h.stream.Next(), uint32(n))) }

// Float32 returns the next draw, mapped to [0, 1) in steps of 2^-24.
func (h *Hop) Float32() float32 { return philox.Float32(h.stream.Next()) }

// enter sets h to another hop and keeps its scratch memory.
func (h *Hop) enter(to *Hop) {
	keep := h.hopScratch
	*h = *to
	h.hopScratch = keep
}

// linearPicks is the largest number of picks that are searched linearly; above it a bit set is
// faster.
const linearPicks = 48

// Uniform appends k of the positions 0 to n-1 to out, chosen uniformly without replacement,
// ascending. It takes k draws. If k is negative or not below n, it appends all n positions and
// draws nothing.
//
// It is Floyd's algorithm: for j = n-k to n-1, take t = a draw from [0, j], or j if t is taken
// already. Source: J. Bentley, R. Floyd, "Programming pearls: a sample of brilliance", CACM 30(9),
// 1987, doi:10.1145/30401.315746.
func (h *Hop) Uniform(n, k int, out []int32) []int32 {
	if k < 0 || k >= n {
		for i := range n {
			out = append(out, int32(i))
		}
		return out
	}
	first := len(out)
	out = slices.Grow(out, k)
	if k > linearPicks {
		return h.uniformMany(n, k, out)
	}
	for j := n - k; j < n; j++ {
		t := int32(philox.Bounded(h.stream.Next(), uint32(j+1)))
		i := len(out)
		for i > first && out[i-1] > t {
			i--
		}
		if i > first && out[i-1] == t {
			// j exceeds all earlier picks, so the picks stay ascending.
			out = append(out, int32(j))
			continue
		}
		out = append(out, 0)
		copy(out[i+1:], out[i:])
		out[i] = t
	}
	return out
}

// uniformMany is Uniform with a bit set instead of a linear search.
func (h *Hop) uniformMany(n, k int, out []int32) []int32 {
	first := len(out)
	if words := (n + 63) / 64; len(h.seen) < words {
		h.seen = make([]uint64, words)
	}
	for j := n - k; j < n; j++ {
		t := int32(philox.Bounded(h.stream.Next(), uint32(j+1)))
		if h.seen[t>>6]>>(t&63)&1 != 0 {
			t = int32(j)
		}
		h.seen[t>>6] |= 1 << (t & 63)
		out = append(out, t)
	}
	for _, t := range out[first:] {
		h.seen[t>>6] = 0
	}
	slices.Sort(out[first:])
	return out
}
