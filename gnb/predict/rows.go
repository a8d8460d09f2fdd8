package predict

import (
	"cmp"
	"maps"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

var (
	_ sample.Rows      = (*baseRows)(nil)
	_ sample.Rows      = (*overlay)(nil)
	_ graphops.Degrees = (*overlay)(nil)
	_ pairs.Around     = (*overlay)(nil)
)

// baseRows are the in-edges of the dataset's nodes, by places.
type baseRows struct {
	p      *Predictor
	rows   sample.Rows // by the numbers of nodes
	arrays []sample.RowArray
	total  int64 // edges
}

func newBaseRows(p *Predictor) *baseRows {
	b := &baseRows{p: p, rows: p.source.rows, total: p.ds.Edges()}
	for _, a := range b.rows.Arrays() {
		switch {
		case p.of == nil:
		case a.IDs == nil:
			a.IDs = p.of
		default:
			places := make([]int32, len(a.IDs))
			for i, v := range a.IDs {
				places[i] = p.of[v]
			}
			a.IDs = places
		}
		b.arrays = append(b.arrays, a)
	}
	return b
}

// Edges implements [sample.Rows].
func (b *baseRows) Edges() graphops.EdgeShape { return b.rows.Edges() }

// Arrays implements [sample.Rows].
func (b *baseRows) Arrays() []sample.RowArray { return b.arrays }

// Find implements [sample.Rows].
func (b *baseRows) Find(places []int32, out []sample.Place) int {
	if b.p.of == nil { // a place is a node, and new ones are no nodes of the dataset
		return b.rows.Find(places, out)
	}
	nodes := make([]int32, 0, len(places))
	for _, at := range places {
		v := b.p.node(at)
		if v < 0 {
			break
		}
		nodes = append(nodes, v)
	}
	return b.rows.Find(nodes, out)
}

// Row implements [sample.Rows].
func (b *baseRows) Row(place int32) (r sample.Row, ok bool) { return rowAt(b, place) }

// rowAt is Row by Find and Arrays.
func rowAt(rows sample.Rows, place int32) (r sample.Row, ok bool) {
	var at [1]sample.Place
	if rows.Find([]int32{place}, at[:]) == 0 {
		return r, false
	}
	x, p := rows.Arrays()[at[0].Array], at[0]
	hi := p.At + int64(p.N)
	return sample.Row{Sources: x.Sources[p.At:hi:hi], IDs: x.IDs, First: p.First, Edges: x.Edges, At: p.At}, true
}

// overlay is the dataset, or what is below it, with new nodes and edges: the rows of all nodes that get in-edges, and of the new
// ones, are its own. It is read-only once made. The overlay without new nodes and edges has no rows of its own.
type overlay struct {
	*baseRows
	below *overlay // what Add has kept, under the additions of a call; nil: the dataset
	nodes []addedNode
	news  map[int32]int   // by place, the new node in nodes
	at    map[int32]int32 // by place, the row in own
	own   *graphops.Graph // sources are places; nil without new nodes and edges
	data  graphops.EdgeData
	both  []sample.RowArray // those below, then own
	first int64             // the position of own's first edge: behind those of all below
	total int               // nodes of the dataset with the new ones appended
}

// addedNode is a new node.
type addedNode struct {
	id    string
	typ   int
	place int32
	// x is the row of features, in the order and the width of the network's input; nil if the input is not features.
	x []float32
	// key is what the node's draws depend on.
	key int32
}

// Arrays implements [sample.Rows].
func (o *overlay) Arrays() []sample.RowArray { return o.both }

// Find implements [sample.Rows].
func (o *overlay) Find(places []int32, out []sample.Place) int {
	if o.own == nil {
		return o.under().Find(places, out)
	}
	own, under := len(o.both)-1, o.under()
	for i, at := range places {
		row, ok := o.at[at]
		if !ok {
			if under.Find(places[i:i+1], out[i:i+1]) == 0 {
				return i
			}
			continue
		}
		lo, hi := o.own.Indptr[row], o.own.Indptr[row+1]
		out[i] = sample.Place{Array: int32(own), N: int32(hi - lo), At: lo, First: o.first + lo}
	}
	return len(places)
}

// under are the rows of the nodes that o has no rows of.
func (o *overlay) under() sample.Rows {
	if o.below != nil {
		return o.below
	}
	return o.baseRows
}

// added is the new node at a place.
func (o *overlay) added(place int32) *addedNode {
	for ; o.below != nil; o = o.below {
		if i, ok := o.news[place]; ok {
			return &o.nodes[i]
		}
	}
	return &o.nodes[o.news[place]]
}

// Row implements [sample.Rows].
func (o *overlay) Row(place int32) (r sample.Row, ok bool) { return rowAt(o, place) }

// NumNodes implements [pairs.Around].
func (o *overlay) NumNodes() int { return o.p.places() }

// InNeighbors implements [pairs.Around].
func (o *overlay) InNeighbors(place int32) []int32 {
	r, _ := o.Row(place)
	if r.IDs == nil {
		return r.Sources
	}
	all := make([]int32, len(r.Sources))
	for i, s := range r.Sources {
		all[i] = r.IDs[s]
	}
	return all
}

// InDegree implements [graphops.Degrees].
func (o *overlay) InDegree(place int32) int {
	var at [1]sample.Place
	o.Find([]int32{place}, at[:])
	return int(at[0].N)
}

// LoopedDegree implements [graphops.Degrees]. Cost: with weights, one pass over the row; without, a binary search.
func (o *overlay) LoopedDegree(place int32) float32 {
	r, _ := o.Row(place)
	if r.Weights() != nil {
		degree, _ := r.LoopedDegree(place)
		return degree
	}
	lo, hi := loops(&r, place)
	return float32(len(r.Sources) - (hi - lo) + 1)
}

// SelfLoop implements [graphops.Degrees].
func (o *overlay) SelfLoop(place int32) (weight float32, ok bool) {
	r, _ := o.Row(place)
	lo, hi := loops(&r, place)
	if lo == hi {
		return 0, false
	}
	if w := r.Weights(); w != nil {
		return w[hi-1], true
	}
	return 1, true
}

// loops are the edges [lo, hi) of a row that come from its own node.
func loops(r *sample.Row, place int32) (lo, hi int) {
	compare := func(s, want int32) int {
		if r.IDs != nil {
			s = r.IDs[s]
		}
		return int(s) - int(want)
	}
	lo, _ = slices.BinarySearchFunc(r.Sources, place, compare)
	for hi = lo; hi < len(r.Sources) && compare(r.Sources[hi], place) == 0; hi++ {
	}
	return lo, hi
}

// plain is the dataset without new nodes.
func (p *Predictor) plain() *overlay {
	return &overlay{baseRows: p.base, both: p.base.arrays, first: p.base.total, total: p.ds.Nodes()}
}

// overlaid makes the overlay of new nodes, and of edges between places whose data have the shape of the dataset's, on that of under.
// fresh has the edges by destination as the conversion of the dataset made its own; row i of fresh is that of the place touched[i],
// ascending. New edges that a node has already are merged with those, as the conversion does; their number is returned.
//
// It returns a [*LimitError] if the known nodes that get an edge have more in-edges together than [Options].MaxEdges.
func (p *Predictor) overlaid(under *overlay, nodes []addedNode, fresh *graphops.Graph, touched []int32) (o *overlay, merged int, err error) {
	if len(nodes) == 0 && len(fresh.Indices) == 0 {
		return under, 0, nil
	}
	o = &overlay{
		baseRows: p.base, below: under, nodes: nodes, news: map[int32]int{}, at: map[int32]int32{}, total: under.total + len(nodes),
		first: under.first,
	}
	if under.own != nil {
		o.first += int64(len(under.own.Indices))
	}
	own := &graphops.Graph{Indptr: []int64{0}}
	edges, hub, most := 0, int32(-1), 0
	var rows []int // of fresh
	for i := range nodes {
		o.news[nodes[i].place] = i
	}
	for i, place := range touched {
		_, added := o.news[place]
		if n := fresh.InDegree(int32(i)); n > 0 || added {
			o.at[place] = int32(len(rows))
			rows = append(rows, i)
			edges += n
			if r, ok := under.Row(place); ok && !added {
				if edges += len(r.Sources); len(r.Sources) > most {
					hub, most = place, len(r.Sources)
				}
			}
		}
	}
	if edges > p.o.MaxEdges {
		e := &LimitError{Limit: p.o.MaxEdges, Degree: edges}
		if len(nodes) > 0 {
			e.Node, e.Hub = nodes[0].id, nodes[0].id
		}
		if hub >= 0 {
			e.Hub, e.Degree = p.shown(under, hub), most
			e.Node = cmp.Or(e.Node, e.Hub)
		}
		return nil, 0, e
	}
	own.Indices = make([]int32, 0, edges)
	o.data.SetLen(p.base.Edges(), edges)
	added, twice := fresh.EdgeData(), false
	for _, i := range rows {
		var known sample.Row
		if _, isNew := o.news[touched[i]]; !isNew {
			known, _ = under.Row(touched[i])
		}
		placeOf := func(s int32) int32 {
			if known.IDs != nil {
				return known.IDs[s]
			}
			return s
		}
		from := 0
		take := func(to int) { // the known edges up to number to
			if from == to {
				return
			}
			at := len(own.Indices)
			for _, s := range known.Sources[from:to] {
				own.Indices = append(own.Indices, placeOf(s))
			}
			o.data.CopyRange(at, known.Edges, int(known.At)+from, int(known.At)+to)
			from = to
		}
		for e := fresh.Indptr[i]; e < fresh.Indptr[i+1]; e++ {
			source := touched[fresh.Indices[e]]
			to, ok := slices.BinarySearchFunc(known.Sources[from:], source, func(s, want int32) int { return int(placeOf(s)) - int(want) })
			twice = twice || ok
			take(from + to)
			own.Indices = append(own.Indices, source)
			o.data.CopyRange(len(own.Indices)-1, &added, int(e), int(e+1))
		}
		take(len(known.Sources))
		own.Indptr = append(own.Indptr, int64(len(own.Indices)))
	}
	o.own = own
	if twice {
		if merged, err = o.merge(slices.ContainsFunc(rows, func(i int) bool {
			r, _ := under.Row(touched[i])
			return hasEqual(r)
		})); err != nil {
			return nil, 0, err
		}
	}
	o.both = append(slices.Clone(under.both), sample.RowArray{Sources: o.own.Indices, Edges: &o.data})
	return o, merged, nil
}

// hasEqual reports whether a row has two edges that the conversion of a dataset makes one, unless it keeps them.
func hasEqual(r sample.Row) bool {
	for i := 1; i < len(r.Sources); i++ {
		a, b := r.At+int64(i)-1, r.At+int64(i)
		if e := r.Edges; r.Sources[i-1] == r.Sources[i] && (e.Types == nil || e.Types[a] == e.Types[b]) && (e.Times == nil || e.Times[a] == e.Times[b]) {
			return true
		}
	}
	return false
}

// merge puts equal edges of own into the order of a dataset's, and makes them one unless they are kept.
// It returns how many were left out.
func (o *overlay) merge(keep bool) (merged int, err error) {
	places := make([]int32, len(o.at)) // by row
	for place, row := range o.at {
		places[row] = place
	}
	all := slices.Concat(places, o.own.Indices)
	slices.Sort(all)
	all = slices.Compact(all)
	local := func(place int32) int32 {
		i, _ := slices.BinarySearch(all, place)
		return int32(i)
	}
	src, dst := make([]int32, len(o.own.Indices)), make([]int32, len(o.own.Indices))
	for row, place := range places {
		at := local(place)
		for e := o.own.Indptr[row]; e < o.own.Indptr[row+1]; e++ {
			src[e], dst[e] = local(o.own.Indices[e]), at
		}
	}
	g, err := graphops.FromEdgesWith(len(all), src, dst, o.data, graphops.BuildOptions{KeepDuplicates: keep, Threads: 1})
	if err != nil {
		return 0, bad("%w", err)
	}
	own, from := &graphops.Graph{Indptr: []int64{0}}, g.EdgeData()
	merged = len(o.own.Indices) - len(g.Indices)
	if merged > 0 && from.Features != nil {
		return 0, bad("%d of the new edges are in %s already, and the features of equal edges are averaged over edges that are not known any more; leave them out, or append them by tables.Append", merged, o.p.in.Name())
	}
	o.data = graphops.EdgeData{}
	o.data.SetLen(o.Edges(), len(g.Indices))
	for _, place := range places {
		at := local(place)
		lo, hi := g.Indptr[at], g.Indptr[at+1]
		o.data.CopyRange(len(own.Indices), &from, int(lo), int(hi))
		for _, s := range g.Indices[lo:hi] {
			own.Indices = append(own.Indices, all[s])
		}
		own.Indptr = append(own.Indptr, int64(len(own.Indices)))
	}
	o.own = own
	return merged, nil
}

// flat is the overlay of o and of all that are below it as one, on the dataset.
func (o *overlay) flat() *overlay {
	if o.below == nil {
		return o
	}
	f := &overlay{baseRows: o.baseRows, news: map[int32]int{}, at: map[int32]int32{}, total: o.total, first: o.p.base.total}
	var chain []*overlay
	for b := o; b != nil; b = b.below {
		chain = append(chain, b)
	}
	slices.Reverse(chain)
	var places []int32
	for _, b := range chain {
		f.nodes = append(f.nodes, b.nodes...)
		places = slices.AppendSeq(places, maps.Keys(b.at))
	}
	for i := range f.nodes {
		f.news[f.nodes[i].place] = i
	}
	slices.Sort(places)
	places = slices.Compact(places)
	f.own = &graphops.Graph{Indptr: []int64{0}}
	edges := 0
	for _, place := range places {
		r, _ := o.Row(place)
		edges += len(r.Sources)
	}
	f.data.SetLen(o.Edges(), edges)
	for i, place := range places {
		r, _ := o.Row(place)
		f.at[place] = int32(i)
		f.data.CopyRange(len(f.own.Indices), r.Edges, int(r.At), int(r.At)+len(r.Sources))
		f.own.Indices = append(f.own.Indices, r.Sources...) // places, as of all rows of overlays
		f.own.Indptr = append(f.own.Indptr, int64(len(f.own.Indices)))
	}
	f.both = append(slices.Clone(o.p.base.arrays), sample.RowArray{Sources: f.own.Indices, Edges: &f.data})
	return f
}
