package sample

import (
	"cmp"
	"slices"
)

// view is some of the in-edges of a node, which a picker sees as if they were all. It keeps memory between nodes.
type view struct {
	left    []int32 // positions of the edges in view: ascending, or in the order of time for seeds with times
	from    []int32 // the same among all in-edges of the node
	sources []int32
	weights []float32
	times   []int64
	types   []uint16
	known   []int64
	keys    []placeInTime
}

// placeInTime is an in-edge of a node, with the time from which it is known.
type placeInTime struct {
	time  int64
	place int32
}

func sortPlaces(keys []placeInTime) {
	slices.SortFunc(keys, func(a, b placeInTime) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.place, b.place))
	})
}

// pick asks a picker about the edges w.left of nbrs, and appends their positions in nbrs.
func (w *view) pick(h *Hop, p Picker, v int32, nbrs, out []int32) []int32 {
	switch len(w.left) {
	case 0:
		return out
	case len(nbrs):
		return p.Pick(h, v, nbrs, out)
	}
	return w.through(h, p, v, nbrs, out)
}

// through is pick for edges that are not none, in any order.
func (w *view) through(h *Hop, p Picker, v int32, nbrs, out []int32) []int32 {
	seen := h.inEdgesOf
	w.sources = chosen(w.sources, nbrs, w.left)
	if h.from == nil {
		h.from = w.left
	} else {
		w.from = chosen(w.from, h.from, w.left)
		h.from = w.from
	}
	if h.weights != nil {
		w.weights = chosen(w.weights, h.weights, w.left)
		h.weights = w.weights
	}
	if h.times != nil {
		w.times = chosen(w.times, h.times, w.left)
		h.times = w.times
	}
	if all := h.row.known; all != nil {
		w.known = chosen(w.known, all, w.left)
		h.row = rowInTime{known: w.known}
	}
	if h.types != nil {
		w.types = chosen(w.types, h.types, w.left)
		h.types = w.types
	}
	first := len(out)
	out = p.Pick(h, v, w.sources, out)
	h.inEdgesOf = seen
	for i, at := range out[first:] {
		if uint(at) >= uint(len(w.left)) {
			out[first+i] = int32(len(nbrs)) // the sampler reports a position out of range
			continue
		}
		out[first+i] = w.left[at]
	}
	return out
}

// chosen returns the elements of all at positions, in the memory of out.
func chosen[T any](out, all []T, positions []int32) []T {
	out = resize(out, len(positions))
	for i, p := range positions {
		out[i] = all[p]
	}
	return out
}

// pickFor asks a picker about the in-edges of a node in a tree: about those that the tree's seed sees. hidden is the number
// of those that it does not see.
func (h *Hop) pickFor(p Picker, t *trees, tree, v int32, nbrs, out []int32) (_ []int32, hidden int) {
	if len(t.roots) == 0 {
		h.At(v)
		return p.Pick(h, v, nbrs, out), 0
	}
	r := &t.roots[tree]
	h.seed = r.key
	h.At(v)
	if !t.timed {
		return p.Pick(h, v, nbrs, out), 0
	}
	return h.pickAsOf(p, r, v, nbrs, out)
}
