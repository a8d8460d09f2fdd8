package pairs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// Relation is what a split of a graph with types predicts: the edges of one relation.
type Relation struct {
	graphops.Relation
	// Number is the relation's number in the schema.
	Number int
	// Reverses are the relations that have its edges in the other direction.
	Reverses []int
	// Sources have the ids [SrcLo, SrcHi), and destinations [DstLo, DstHi).
	SrcLo, SrcHi, DstLo, DstHi int32
}

// NewRelation returns the relation of a schema that a text names, without its reverses, which
// [FindRelation] finds. It returns an error if there is no such relation.
func NewRelation(s *graphops.Schema, name string) (*Relation, error) {
	if s == nil {
		return nil, fmt.Errorf("pairs: relation %q is to be predicted, but the graph has no types; leave the relation out", name)
	}
	number, err := s.Relation(name)
	if err != nil {
		return nil, fmt.Errorf("pairs: %w", err)
	}
	r := &Relation{Relation: s.Relations[number], Number: number}
	src, dst := s.Ends(number)
	starts := s.Starts()
	r.SrcLo, r.SrcHi, r.DstLo, r.DstHi = int32(starts[src]), int32(starts[src+1]), int32(starts[dst]), int32(starts[dst+1])
	return r, nil
}

// FindRelation returns the relation of a graph with types that a text names: "author:writes:paper", or
// its name alone if no other relation has that name.
//
// A relation is one of its reverses if it is named so (see [graphops.Schema.Reverses]), or if it has the
// reverse of each of its edges, as WordNet's hyponyms have those of hypernyms. reverse names one more; ""
// names none.
//
// It returns an error if there is no such relation, if it has no edges, or if reverse does not lead from
// its destinations to its sources. Cost: a search for each of its edges.
func FindRelation(g *graphops.Graph, name, reverse string) (*Relation, error) {
	if err := hasNodes(g); err != nil {
		return nil, err
	}
	r, err := NewRelation(g.Schema, name)
	if err != nil {
		return nil, err
	}
	s, number, edges := g.Schema, r.Number, g.RelationEdges()
	if edges[number] == 0 {
		return nil, fmt.Errorf("pairs: relation %s has no edges to predict; choose another one", r)
	}
	back := func(q int) bool { return s.Relations[q].Src == r.Dst && s.Relations[q].Dst == r.Src }
	if _, of := s.Reverses(); of[number] < len(of) && of[number] != number {
		r.Reverses = append(r.Reverses, of[number])
	}
	if reverse != "" {
		q, err := s.Relation(reverse)
		switch {
		case err != nil:
			return nil, fmt.Errorf("pairs: the reverse relation: %w", err)
		case !back(q) || q == number:
			return nil, fmt.Errorf("pairs: relation %s cannot be the reverse of %s: it does not lead from nodes of type %s to nodes of type %s", s.Relations[q], r, r.Dst, r.Src)
		}
		r.Reverses = append(r.Reverses, q)
	}
	only := r.Of(g)
	for q := range s.Relations {
		if q != number && back(q) && edges[q] > 0 && mirrors(g, uint16(q), only) {
			r.Reverses = append(r.Reverses, q)
		}
	}
	slices.Sort(r.Reverses)
	r.Reverses = slices.Compact(r.Reverses)
	return r, nil
}

// mirrors reports whether relation q has the reverse of each edge of a graph.
func mirrors(g *graphops.Graph, q uint16, of *graphops.Graph) bool {
	for v := range int32(of.NumNodes()) {
		for _, u := range of.InNeighbors(v) {
			row := g.InNeighbors(u)
			at, ok := slices.BinarySearch(row, v)
			for ; ok && row[at] == v && g.EdgeTypes[g.Indptr[u]+int64(at)] != q; at++ {
				ok = at+1 < len(row)
			}
			if !ok || row[at] != v {
				return false
			}
		}
	}
	return true
}

// Of returns the relation's edges in a graph with its schema: a graph of all nodes without types, with the
// edges' times alone.
func (r *Relation) Of(g *graphops.Graph) *graphops.Graph { return r.with(g, g.EdgeTimes) }

// with is Of with other times; nil means none.
func (r *Relation) with(g *graphops.Graph, times []int64) *graphops.Graph {
	n := &graphops.Graph{Indptr: make([]int64, g.NumNodes()+1), Indices: []int32{}}
	if times != nil {
		n.EdgeTimes = []int64{}
	}
	for v := range g.NumNodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if int(g.EdgeTypes[e]) != r.Number {
				continue
			}
			n.Indices = append(n.Indices, g.Indices[e])
			if times != nil {
				n.EdgeTimes = append(n.EdgeTimes, times[e])
			}
		}
		n.Indptr[v+1] = int64(len(n.Indices))
	}
	return n
}

// Sources are the ids of the nodes of its sources' type, ascending; Destinations those of its
// destinations' type. Both are new slices.
func (r *Relation) Sources() []int32 { return span(r.SrcLo, r.SrcHi) }

// Destinations is documented with Sources.
func (r *Relation) Destinations() []int32 { return span(r.DstLo, r.DstHi) }

func span(lo, hi int32) []int32 {
	ids := make([]int32, 0, hi-lo)
	for v := lo; v < hi; v++ {
		ids = append(ids, v)
	}
	return ids
}

// Check returns an error for a pair whose ends are not of the relation's types.
func (r *Relation) Check(e Edges) error {
	for i, u := range e.Src {
		if v := e.Dst[i]; u < r.SrcLo || u >= r.SrcHi || v < r.DstLo || v >= r.DstHi {
			return fmt.Errorf("pairs: pair %d is %d → %d, but relation %s leads from nodes %d to %d (%s) to nodes %d to %d (%s)", i, u, v, r, r.SrcLo, r.SrcHi-1, r.Src, r.DstLo, r.DstHi-1, r.Dst)
		}
	}
	return nil
}

// CheckEnds returns an error for a source or a destination that is not of the relation's types.
func (r *Relation) CheckEnds(sources, destinations []int32) error {
	for _, v := range sources {
		if v < r.SrcLo || v >= r.SrcHi {
			return fmt.Errorf("pairs: node %d is no source of relation %s: those are the nodes %d to %d (%s)", v, r, r.SrcLo, r.SrcHi-1, r.Src)
		}
	}
	for _, v := range destinations {
		if v < r.DstLo || v >= r.DstHi {
			return fmt.Errorf("pairs: node %d is no destination of relation %s: those are the nodes %d to %d (%s)", v, r, r.DstLo, r.DstHi-1, r.Dst)
		}
	}
	return nil
}

// typed returns edges as edges of the relation, and their reverses as edges of its reverses.
func (r *Relation) typed(e Edges, undirected bool) (all Edges, types []uint16) {
	add := func(e Edges, number int) {
		all = all.Join(e)
		types = append(types, slices.Repeat([]uint16{uint16(number)}, e.Len())...)
	}
	back := Edges{e.Dst, e.Src}
	add(e, r.Number)
	if undirected {
		add(back, r.Number)
	}
	for _, q := range r.Reverses {
		add(back, q)
		if undirected {
			add(e, q)
		}
	}
	return all, types
}

// relation finds what is predicted of a graph: a relation and its edges, or the whole graph. times are
// those of the graph's edges, nil for none. A relation whose edges all have their reverse in it is
// undirected.
func (o *SplitOptions) relation(g *graphops.Graph, times []int64) (*Relation, *graphops.Graph, error) {
	if o.Relation == "" {
		if o.Reverse != "" {
			return nil, nil, errors.New("pairs: there is a reverse relation, but no relation to predict; give both")
		}
		return nil, g, nil
	}
	r, err := FindRelation(g, o.Relation, o.Reverse)
	if err != nil {
		return nil, nil, err
	}
	only := r.with(g, times)
	o.Undirected = r.Src == r.Dst && only.Symmetric()
	return r, only, nil
}

// OfRelation returns the edges of a graph that are of the kind that the split predicts: those of its
// relation, as [Relation.Of] returns them, or g itself if the split has none.
func (s *Split) OfRelation(g *graphops.Graph) *graphops.Graph {
	if s.Relation == nil || g.EdgeTypes == nil {
		return g
	}
	return s.Relation.Of(g)
}
