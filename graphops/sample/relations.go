package sample

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

var _ Picker = (*RelationFanouts)(nil)

// RelationFanouts is the [Picker] of uniform sampling without replacement by relation, for graphs whose
// edges have types ([graphops.Graph.EdgeTypes]): at hop h a node takes, of its in-edges of relation r,
// By[r][h] of them, or All[h] if By does not have r. As in [Fanouts], -1 takes all and 0 none. So a node
// takes up to the sum of the fanouts of the relations that its in-edges have, as with a dictionary of
// fanouts by type of edges in PyG.
//
// A node's draws are for its relations in ascending order, one after the other: min(fanout, edges) for
// each relation that has more edges than its fanout. A graph with one relation, or without types, gets the
// picks of Fanouts. Picks depend neither on workers nor on threads. A node takes at most 2^18 draws at a
// hop; where its fanouts need more, sampling fails with a [*PickError].
//
// It must not change while a sampler has it. Cost: a sort of the in-edges of each node with several relations. A device does not sample by it: the
// host does.
//
// With Labor a node takes its edges of each relation by layer-neighbour sampling with these options, whose
// Fanouts are not used: see [Labor]. A source has one random number at a hop, for all relations.
type RelationFanouts struct {
	All   Fanouts
	By    map[int]Fanouts
	Labor *Labor
}

// NewRelationFanouts returns the picker with fanouts by the relations' texts: see
// [graphops.Schema.Relation]. It returns an error for a relation that the schema does not have, and for
// fanouts that [RelationFanouts.Check] refuses.
func NewRelationFanouts(s *graphops.Schema, all Fanouts, by map[string]Fanouts) (*RelationFanouts, error) {
	if s == nil {
		return nil, errors.New("sample: fanouts by relation need the schema of a graph with types")
	}
	f := &RelationFanouts{All: slices.Clone(all), By: map[int]Fanouts{}}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		r, err := s.Relation(text)
		if err != nil {
			return nil, fmt.Errorf("sample: fanouts by relation: %w", err)
		}
		if _, twice := f.By[r]; twice {
			return nil, fmt.Errorf("sample: there are fanouts of relation %s twice, by its name and by all three names", s.Relations[r])
		}
		f.By[r] = slices.Clone(by[text])
	}
	return f, f.Check()
}

// Hops is the number of fanouts.
func (f *RelationFanouts) Hops() int { return len(f.All) }

// Check returns an error if a sampler cannot use the fanouts: those that [Fanouts.Check] refuses, and
// those of a relation for another number of hops than All.
func (f *RelationFanouts) Check() error {
	if err := f.All.Check(); err != nil {
		return err
	}
	if f.Labor != nil {
		if err := f.Labor.Check(); err != nil {
			return err
		}
	}
	for _, r := range slices.Sorted(maps.Keys(f.By)) {
		if r < 0 || r >= graphops.MaxRelations {
			return fmt.Errorf("sample: there are fanouts of relation %d; relations are 0 to %d", r, graphops.MaxRelations-1)
		}
		if n := len(f.By[r]); n != len(f.All) {
			return fmt.Errorf("sample: relation %d has fanouts of %d hops, but the other relations of %d", r, n, len(f.All))
		}
		if err := f.By[r].Check(); err != nil {
			return fmt.Errorf("%w (of relation %d)", err, r)
		}
	}
	return nil
}

// fanout is that of a relation at a hop.
func (f *RelationFanouts) fanout(relation uint16, hop int) int {
	if of, ok := f.By[int(relation)]; ok {
		return of[hop]
	}
	return f.All[hop]
}

// Pick implements [Picker].
func (f *RelationFanouts) Pick(h *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	types := h.types
	if one(types) {
		relation := uint16(0)
		if len(types) > 0 {
			relation = types[0]
		}
		return f.take(h, f.fanout(relation, h.Index), nbrs, out)
	}
	// The in-edges by relation, then by position.
	order := h.byType[:0]
	for i, t := range types {
		order = append(order, uint64(t)<<32|uint64(i))
	}
	slices.Sort(order)
	h.byType = order
	for lo := 0; lo < len(order); {
		relation, hi := uint16(order[lo]>>32), lo
		for hi < len(order) && uint16(order[hi]>>32) == relation {
			hi++
		}
		sources := h.ofType[:0]
		if f.Labor != nil {
			for _, e := range order[lo:hi] {
				sources = append(sources, nbrs[uint32(e)])
			}
		} else { // only their number matters
			sources = nbrs[:hi-lo]
		}
		known := h.row.known
		if h.strategy == takeByAge {
			h.ofTimes = h.ofTimes[:0]
			for _, e := range order[lo:hi] {
				h.ofTimes = append(h.ofTimes, known[uint32(e)])
			}
			h.row.known = h.ofTimes
		}
		first := len(out)
		out = f.take(h, f.fanout(relation, h.Index), sources, out)
		h.row.known = known
		if f.Labor != nil {
			h.ofType = sources
		}
		for i, p := range out[first:] {
			out[first+i] = int32(uint32(order[lo+int(p)]))
		}
		lo = hi
	}
	return out
}

// take appends the positions of k of the sources of one relation's edges.
func (f *RelationFanouts) take(h *Hop, k int, sources []int32, out []int32) []int32 {
	if f.Labor != nil {
		return f.Labor.pick(h, k, sources, out)
	}
	return h.choose(len(sources), k, out)
}

// one reports whether all types are equal.
func one(types []uint16) bool {
	for _, t := range types {
		if t != types[0] {
			return false
		}
	}
	return true
}
