package sample

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// EdgeSet is a set of directed edges. It is read-only and safe for concurrent use; nil is the empty
// set.
type EdgeSet struct {
	keys []uint64 // destination and source, ascending
	of   []uint16 // the relations of the edges, ascending; nil means any
}

// NewEdgeSet returns the set of the edges src[i] → dst[i] and, if reverses is set, of dst[i] →
// src[i]. The slices are equally long and are not kept. Cost: a sort.
func NewEdgeSet(src, dst []int32, reverses bool) *EdgeSet {
	keys := make([]uint64, 0, 2*len(src))
	for i, u := range src {
		keys = append(keys, edgeKey(u, dst[i]))
		if reverses {
			keys = append(keys, edgeKey(dst[i], u))
		}
	}
	slices.Sort(keys)
	return &EdgeSet{keys: slices.Compact(keys)}
}

// OfRelations returns the set of these edges with one of the given relations, which are numbers of a
// graph's schema; edges of other relations between the same nodes are not in it. Without a relation it is
// empty. The result shares memory with s.
func (s *EdgeSet) OfRelations(relations ...int) *EdgeSet {
	if s == nil || len(relations) == 0 {
		return nil
	}
	of := make([]uint16, len(relations))
	for i, r := range relations {
		of[i] = uint16(r)
	}
	slices.Sort(of)
	return &EdgeSet{s.keys, of}
}

func edgeKey(src, dst int32) uint64 { return uint64(uint32(dst))<<32 | uint64(uint32(src)) }

// Len is the number of edges.
func (s *EdgeSet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.keys)
}

// Has reports whether src → dst is in the set, of any relation.
func (s *EdgeSet) Has(src, dst int32) bool {
	if s == nil {
		return false
	}
	_, ok := slices.BinarySearch(s.keys, edgeKey(src, dst))
	return ok
}

// HasOf reports whether src → dst of a relation is in the set.
func (s *EdgeSet) HasOf(src, dst int32, relation uint16) bool {
	return s.Has(src, dst) && s.has(relation)
}

// has reports whether the set has edges of a relation.
func (s *EdgeSet) has(relation uint16) bool {
	return s.of == nil || slices.Contains(s.of, relation)
}

// into returns the keys of the edges to a node.
func (s *EdgeSet) into(dst int32) []uint64 {
	if s == nil {
		return nil
	}
	at, _ := slices.BinarySearch(s.keys, edgeKey(0, dst))
	n, _ := slices.BinarySearchFunc(s.keys[at:], dst, func(k uint64, dst int32) int { return cmp.Compare(int32(k>>32), dst+1) })
	return s.keys[at : at+n]
}

var _ Picker = (*Excluding)(nil)

// Excluding is the [Picker] that picks as another one does, from a graph without some edges: it
// never picks them, at any hop. Link prediction excludes the edges that a batch predicts from its
// messages.
//
// Of returns the edges that are excluded at a step, all copies of them, nil for none; of a graph with
// types, see [EdgeSet.OfRelations]. Several
// goroutines call it, for each node that they pick for, so it must be fast and return the same at
// each call of a step. The set must be that of the whole step, not of one rank's share, for the
// picks not to depend on workers.
//
// The other picker sees the remaining in-edges as the node's in-edges, with their weights, times, types and positions.
//
// Cost: a search in the set for each node, and a pass over the in-edges of nodes that have excluded
// ones. A device does not sample by it: the host does.
type Excluding struct {
	Picker Picker
	Of     func(epoch, step int) *EdgeSet
}

// Hops is the other picker's number of hops, 0 if it does not know it.
func (x *Excluding) Hops() int {
	if h, ok := x.Picker.(interface{ Hops() int }); ok {
		return h.Hops()
	}
	return 0
}

// Check returns an error if a sampler cannot use the other picker.
func (x *Excluding) Check() error {
	if x.Picker == nil || x.Of == nil {
		return errors.New("sample: sample.Excluding needs a Picker and the edges to exclude, Of")
	}
	if isStepPicker(x.Picker) {
		return fmt.Errorf("sample: a %T picks by all seeds of a step, so a sample.Excluding cannot take edges out of its picks; exclude edges from another picker's", x.Picker)
	}
	if _, nested := x.Picker.(*Excluding); nested { // both would use the Hop's one list of remaining edges
		return errors.New("sample: the Picker of a sample.Excluding is another one; let Of of one of them return the edges of both")
	}
	return CheckPicker(x.Picker)
}

// NeedsWeights reports whether the other picker picks by weights.
func (x *Excluding) NeedsWeights() bool { return needsWeights(x.Picker) }

// Pick implements [Picker].
func (x *Excluding) Pick(h *Hop, v int32, nbrs []int32, out []int32) []int32 {
	set := x.Of(h.epoch, h.step)
	gone := set.into(v)
	if len(gone) == 0 {
		return x.Picker.Pick(h, v, nbrs, out)
	}
	w := &h.without
	w.left = w.left[:0]
	at := 0
	for i, u := range nbrs {
		if h.row.known != nil { // the edges are in the order of time
			at, _ = slices.BinarySearchFunc(gone, uint32(u), func(k uint64, u uint32) int { return cmp.Compare(uint32(k), u) })
		}
		for at < len(gone) && uint32(gone[at]) < uint32(u) {
			at++
		}
		if at == len(gone) || uint32(gone[at]) != uint32(u) || h.types != nil && !set.has(h.types[i]) {
			w.left = append(w.left, int32(i))
		}
	}
	return w.pick(h, x.Picker, v, nbrs, out)
}
