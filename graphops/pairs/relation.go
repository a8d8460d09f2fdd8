package pairs

import (
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
	// Shared says how many of its edges other relations have, in the one direction or the other.
	Shared []Shared
	// Sources have the ids [SrcLo, SrcHi), and destinations [DstLo, DstHi).
	SrcLo, SrcHi, DstLo, DstHi int32
}

// Shared is how many of a relation's pairs of nodes another relation has too.
type Shared struct {
	graphops.Relation
	// Reverse says that the other relation has them in the other direction.
	Reverse bool
	// Pairs is how many the other relation has, Of those of the relation.
	Pairs, Of int64
	// LeftOut says that the other relation is one of the reverses, so that held-out edges are left out of it.
	LeftOut bool
}

// notes are sentences about the relations that have most of its edges.
func (r *Relation) notes() (notes []string) {
	for _, s := range r.Shared {
		text := fmt.Sprintf("relation %s has %d of the %d edges of %s", s, s.Pairs, s.Of, r)
		if s.Reverse {
			text += " in the other direction"
		}
		if s.LeftOut {
			text += "; those of held-out edges are no messages"
		} else {
			text += ", and they stay messages"
		}
		notes = append(notes, text)
	}
	return notes
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
// reverses of at least half of its edges, as WordNet's hyponyms have those of hypernyms, beyond what two
// relations drawn at random would share. reverse names one more, "" names none, and [NoReverse] says that no
// relation is one.
//
// It returns an error if there is no such relation, if it has no edges, or if reverse does not lead from
// its destinations to its sources. Cost: a search for each of its edges and each relation between its types.
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
	none := false
	if reverse != "" {
		q, err := s.Relation(reverse)
		switch {
		case err != nil && reverse == NoReverse:
			none = true
		case err != nil:
			return nil, fmt.Errorf("pairs: the reverse relation: %w", err)
		case !back(q) || q == number:
			return nil, fmt.Errorf("pairs: relation %s cannot be the reverse of %s: it does not lead from nodes of type %s to nodes of type %s", s.Relations[q], r, r.Dst, r.Src)
		default:
			r.Reverses = append(r.Reverses, q)
		}
	}
	if none {
		r.Reverses = nil
	}
	only := r.Of(g)
	ends := float64(r.SrcHi-r.SrcLo) * float64(r.DstHi-r.DstLo)
	for q := range s.Relations {
		same := s.Relations[q].Src == r.Src && s.Relations[q].Dst == r.Dst
		if q == number || edges[q] == 0 || !same && !back(q) {
			continue
		}
		share := func(reverse bool) (x Shared, most bool) {
			x = Shared{Relation: s.Relations[q], Reverse: reverse}
			x.Pairs, x.Of = shared(g, uint16(q), only, reverse)
			chance := float64(edges[q]) / ends
			return x, float64(x.Pairs)/float64(x.Of)-chance >= (1-chance)/2 && chance < 1
		}
		if back(q) {
			x, most := share(true)
			if most && !none {
				r.Reverses = append(r.Reverses, q)
			}
			x.LeftOut = slices.Contains(r.Reverses, q)
			if most || x.LeftOut {
				r.Shared = append(r.Shared, x)
			}
		}
		if same {
			if x, most := share(false); most {
				x.LeftOut = slices.Contains(r.Reverses, q) // which leaves out both directions
				r.Shared = append(r.Shared, x)
			}
		}
	}
	slices.Sort(r.Reverses)
	r.Reverses = slices.Compact(r.Reverses)
	return r, nil
}

// NoReverse is the name of the reverse of a relation that has none; see [FindRelation].
const NoReverse = "none"

// shared returns how many edges of a graph, each counted once, relation q has, in the other direction if reverse is
// set, and how many the graph has.
func shared(g *graphops.Graph, q uint16, of *graphops.Graph, reverse bool) (n, all int64) {
	for v := range int32(of.NumNodes()) {
		row := of.InNeighbors(v)
		for i, u := range row {
			if i > 0 && row[i-1] == u {
				continue
			}
			all++
			src, dst := u, v
			if reverse {
				src, dst = v, u
			}
			if hasTyped(g, src, dst, q) {
				n++
			}
		}
	}
	return n, all
}

// hasTyped reports whether src → dst is an edge of relation q.
func hasTyped(g *graphops.Graph, src, dst int32, q uint16) bool {
	row := g.InNeighbors(dst)
	at, _ := slices.BinarySearch(row, src)
	for ; at < len(row) && row[at] == src; at++ {
		if g.EdgeTypes[g.Indptr[dst]+int64(at)] == q {
			return true
		}
	}
	return false
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

// typed returns edges as edges of the relation, and their reverses as edges of its reverses; both in both directions if
// these lead between nodes of one type.
func (r *Relation) typed(e Edges) (all Edges, types []uint16) {
	add := func(e Edges, number int) {
		all = all.Join(e)
		types = append(types, slices.Repeat([]uint16{uint16(number)}, e.Len())...)
	}
	back := Edges{e.Dst, e.Src}
	add(e, r.Number)
	if r.Src == r.Dst {
		add(back, r.Number)
	}
	for _, q := range r.Reverses {
		add(back, q)
		if r.Src == r.Dst {
			add(e, q)
		}
	}
	return all, types
}

// OfRelation returns the edges of a graph that are of the kind that the split predicts: those of its
// relation, as [Relation.Of] returns them, or g itself if the split has none.
func (s *Split) OfRelation(g *graphops.Graph) *graphops.Graph {
	if s.Relation == nil || g.EdgeTypes == nil {
		return g
	}
	return s.Relation.Of(g)
}
