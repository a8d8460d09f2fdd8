package predict

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// state is what answers rest on: the dataset with what [Predictor.Add] has kept, and rows computed beforehand. Nothing of it changes but the rows.
type state struct {
	p    *Predictor
	over *overlay
	ids  []map[string]int // by type: the numbers of kept nodes among those of the type
	rows *computed        // nil without Options.Precompute
	own  bool             // no other state shares rows
	out  *graphops.Graph  // the edges of the dataset by source, made by the first Add that needs them

	listed sync.Once
	list   []int32 // of targets
}

// kept is the number of kept nodes of a type.
func (s *state) kept(typ int) int { return len(s.ids[typ]) }

// count is the number of nodes of a type, with the kept ones.
func (s *state) count(typ int) int { return s.p.count(typ) + s.kept(typ) }

// Added is the result of [Predictor.Add].
type Added struct {
	Nodes int `json:"nodes"`
	Edges int `json:"edges"` // in-edges, in both directions where the dataset has them so, without Merged
	// Merged is the number of edges that were there already.
	Merged int `json:"merged"`
	// Refreshed is the number of nodes whose rows of [Options].Precompute were computed again.
	Refreshed int `json:"refreshed"`
	// KeptNodes and KeptEdges are all that was added so far, edges with those of the dataset into the same nodes.
	KeptNodes int         `json:"kept_nodes"`
	KeptEdges int         `json:"kept_edges"`
	Notices   notice.List `json:"notices,omitempty"`
}

// Add keeps new nodes, and edges between any nodes, in memory until Close: later calls answer as if the dataset had them. Their ids are
// then those of known nodes. An edge that is there already is merged with it, as the conversion of the dataset merges equal edges: weights
// add up. In a dataset with features of edges such an edge is refused. Nothing of the dataset's directory changes; [tables.Append] adds
// for good.
//
// With [Options].Precompute the rows of all nodes that the additions can change are computed again: those within as many hops as the
// layers, along the edges. The first call then takes 4 bytes per edge for the edges by source, unless the graph is undirected. Calls in
// progress answer as before or as after it.
//
// Errors are those of [Predictor.New], and nothing is added then. Options.MaxNew bounds the new nodes of all calls together. Cost: a copy
// of all that was added so far, with the in-edges of its nodes, and the refreshed neighbourhoods.
func (p *Predictor) Add(ctx context.Context, a Additions) (*Added, error) {
	p.adds.Lock() // no other state follows this one
	defer p.adds.Unlock()
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	st := p.state()
	next, r, err := p.add(ctx, st, a)
	if err != nil {
		return nil, err
	}
	var rows map[int32][]float32
	if st.rows != nil {
		var all *computed
		if rows, all, err = p.refresh(ctx, st, next); err != nil {
			return nil, err
		}
		if r.Refreshed = len(rows); all != nil {
			next.rows, r.Refreshed = all, next.over.total
		}
	}
	p.states.Lock()
	defer p.states.Unlock()
	for place, row := range rows {
		copy(st.rows.of(place), row)
	}
	p.current = next
	return r, nil
}

// add makes the state with additions.
func (p *Predictor) add(ctx context.Context, st *state, a Additions) (*state, *Added, error) {
	if len(a.Nodes)+len(a.Edges) == 0 {
		return nil, nil, bad("there is nothing to add: no node and no edge")
	}
	x := newAdding(p, st)
	x.keeps = true
	o, said, err := x.add(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	next := &state{p: p, over: o.flat(), rows: st.rows, out: st.out}
	for typ, ids := range st.ids {
		ids = maps.Clone(ids)
		if ids == nil {
			ids = map[string]int{}
		}
		for id, i := range x.ids[typ] {
			ids[id] = st.kept(typ) + i
		}
		next.ids = append(next.ids, ids)
	}
	r := &Added{Nodes: len(a.Nodes), Merged: x.merged, Edges: x.fresh - x.merged, KeptNodes: len(next.over.nodes), Notices: said}
	if next.over.own != nil {
		r.KeptEdges = len(next.over.own.Indices)
	}
	return next, r, nil
}

// lookup returns the number of a node within its type, -1 if no node has the id.
func (s *state) lookup(typ int, id string) (int, error) {
	if i, ok := s.ids[typ][id]; ok {
		return s.p.count(typ) + i, nil
	}
	return s.p.lookup(typ, id)
}

// idOf is the id of a node by its number within its type.
func (s *state) idOf(typ, number int) string {
	p := s.p
	if number >= p.count(typ) {
		return s.over.added(int32(p.first[typ] + number)).id
	}
	if p.tables != nil {
		if name, err := p.tables.ID(p.typeName(typ), number); err == nil {
			return name
		}
	}
	return strconv.Itoa(number)
}

// changed are the nodes whose rows of a layer the additions of s, which came after those of before, can change, ascending.
func (s *state) changed(before *state, layers int) []int32 {
	p, all := s.p, map[int32]bool{}
	var edge []int32 // of the set
	reach := func(place int32) {
		if !all[place] {
			all[place] = true
			edge = append(edge, place)
		}
	}
	for place := range s.over.at {
		if row, ok := before.over.at[place]; ok && before.over.same(int(row), s.over, place) {
			continue
		}
		reach(place)
	}
	into := map[int32][]int32{} // of kept edges, by source
	for place := range s.over.at {
		r, _ := s.over.Row(place)
		for _, source := range r.Sources {
			into[source] = append(into[source], place)
		}
	}
	for range layers { // one more than rows of their own inputs would need: some layers read the degrees of sources
		from := edge
		edge = nil
		for _, place := range from {
			if v := p.node(place); v >= 0 {
				for _, to := range s.out.InNeighbors(v) {
					reach(p.place(to))
				}
			}
			for _, to := range into[place] {
				reach(to)
			}
		}
	}
	places := slices.Collect(maps.Keys(all))
	slices.Sort(places)
	return places
}

// same reports whether a row of o, by its number, is that of a place in b.
func (o *overlay) same(row int, b *overlay, place int32) bool {
	lo, hi := o.own.Indptr[row], o.own.Indptr[row+1]
	r, _ := b.Row(place)
	if !slices.Equal(o.own.Indices[lo:hi], r.Sources) {
		return false
	}
	if w := o.data.Weights; w != nil {
		return slices.Equal(w[lo:hi], r.Weights())
	}
	return true
}

// within returns the number of a node within its type, or an error if no node has the id.
func (s *state) within(typ int, id string) (int, error) {
	if i, ok := s.ids[typ][id]; ok {
		return s.p.count(typ) + i, nil
	}
	return s.p.within(typ, id)
}
