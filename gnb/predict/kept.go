package predict

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// state is what answers rest on: the dataset with what [Predictor.Add] has kept, and rows computed beforehand. Nothing of it changes but the rows.
type state struct {
	p    *Predictor
	over *overlay
	ids  []map[string]int // by type: the numbers of kept nodes among those of the type
	rows *computed        // nil without Options.Precompute
	own  bool             // no other state shares rows

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
	return p.AddAll(ctx, []Additions{a})
}

// flattenAfter is the number of additions after which [Predictor.AddAll] makes one overlay of their overlays.
const flattenAfter = 32

// AddAll is [Predictor.Add] for several additions, one after another: later ones can join nodes of earlier ones. All of them are added, or
// none. Rows of Options.Precompute are computed again once. The result has the sums.
func (p *Predictor) AddAll(ctx context.Context, all []Additions) (*Added, error) {
	p.adds.Lock() // no other state follows this one
	defer p.adds.Unlock()
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	st := p.state()
	next, r := &state{p: p, over: st.over, rows: st.rows}, &Added{}
	for _, ids := range st.ids {
		own := maps.Clone(ids)
		if own == nil {
			own = map[string]int{}
		}
		next.ids = append(next.ids, own)
	}
	for i, a := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.add(ctx, next, a, r); err != nil {
			if len(all) > 1 {
				return nil, at(err, "addition %d", i+1)
			}
			return nil, err
		}
		if i%flattenAfter == flattenAfter-1 {
			next.over = next.over.flat()
		}
	}
	next.over = next.over.flat()
	r.KeptNodes = len(next.over.nodes)
	if own := next.over.own; own != nil {
		r.KeptEdges = len(own.Indices)
	}
	var rows map[int32][]float32
	if st.rows != nil {
		var whole *computed
		if rows, whole, err = p.refresh(ctx, st, next); err != nil {
			return nil, err
		}
		if r.Refreshed = len(rows); whole != nil {
			next.rows, r.Refreshed = whole, next.over.total
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

// add puts additions on the overlay of next.
func (p *Predictor) add(ctx context.Context, next *state, a Additions, r *Added) error {
	if len(a.Nodes)+len(a.Edges) == 0 {
		return bad("there is nothing to add: no node and no edge")
	}
	for i, n := range a.Nodes {
		if err := p.looksKnown(i, n.ID); err != nil {
			return err
		}
	}
	x := newAdding(p, next)
	x.keeps = true
	o, said, err := x.add(ctx, a)
	if err != nil {
		return err
	}
	next.over = o
	for typ, ids := range next.ids {
		before := len(ids)
		for id, i := range x.ids[typ] {
			ids[id] = before + i
		}
	}
	r.Nodes, r.Merged, r.Edges = r.Nodes+len(a.Nodes), r.Merged+x.merged, r.Edges+x.fresh-x.merged
	for _, n := range said {
		r.Notices.Add(n)
	}
	return nil
}

// looksKnown returns an error for the id of a new node that later calls would take for another node: a number that counts all nodes, or an
// id with a type in front.
func (p *Predictor) looksKnown(i int, id string) error {
	if p.schema == nil {
		return nil // lookup finds it
	}
	if v, err := strconv.Atoi(id); err == nil && p.tables == nil && v >= 0 && v < p.ds.Nodes() {
		return bad("the id %q of new node %d is that of a node of %s already, whose nodes are numbers; give another id", id, i, p.in.Name())
	}
	if name, _, ok := strings.Cut(id, ":"); ok && p.schema.NodeType(name) >= 0 {
		return bad("the id %q of new node %d begins with the type %s, which is how a node of a type is asked for; give another id", id, i, name)
	}
	return nil
}

// lookup returns the number of a node within its type, -1 if no node has the id.
func (s *state) lookup(typ int, id string) (int, error) {
	if i, ok := s.ids[typ][id]; ok {
		return s.p.count(typ) + i, nil
	}
	return s.p.lookup(typ, id)
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
				for _, to := range p.reversed.InNeighbors(v) {
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
