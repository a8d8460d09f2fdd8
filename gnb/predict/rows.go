package predict

import (
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
	edges  graphops.EdgeData
	arrays []sample.RowArray
}

func newBaseRows(p *Predictor) *baseRows {
	b := &baseRows{p: p, edges: p.g.EdgeData()}
	b.arrays = []sample.RowArray{{Sources: p.g.Indices, IDs: p.of, Edges: &b.edges}}
	return b
}

// Edges implements [sample.Rows].
func (b *baseRows) Edges() graphops.EdgeShape { return b.edges.Shape() }

// Arrays implements [sample.Rows].
func (b *baseRows) Arrays() []sample.RowArray { return b.arrays }

// Find implements [sample.Rows].
func (b *baseRows) Find(places []int32, out []sample.Place) int {
	for i, at := range places {
		v := b.p.node(at)
		if v < 0 {
			return i
		}
		lo, hi := b.p.g.Indptr[v], b.p.g.Indptr[v+1]
		out[i] = sample.Place{N: int32(hi - lo), At: lo, First: lo}
	}
	return len(places)
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

// overlay is the dataset with the new nodes and edges of one call: the rows of all nodes that get in-edges, and of the new
// ones, are its own. It is read-only once made. The overlay without new nodes has no rows of its own.
type overlay struct {
	*baseRows
	nodes []addedNode
	news  map[int32]int   // by place, the new node in nodes
	at    map[int32]int32 // by place, the row in own
	own   *graphops.Graph // sources are places; nil without new nodes
	data  graphops.EdgeData
	both  []sample.RowArray // those of the dataset, then own
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
		return o.baseRows.Find(places, out)
	}
	for i, at := range places {
		row, ok := o.at[at]
		if !ok {
			if o.baseRows.Find(places[i:i+1], out[i:i+1]) == 0 {
				return i
			}
			continue
		}
		lo, hi := o.own.Indptr[row], o.own.Indptr[row+1]
		out[i] = sample.Place{Array: 1, N: int32(hi - lo), At: lo, First: int64(len(o.p.g.Indices)) + lo}
	}
	return len(places)
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
	return &overlay{baseRows: p.base, both: p.base.arrays, total: p.g.NumNodes()}
}

// overlaid makes the overlay of new nodes, and of edges between places whose data have the shape of the dataset's. fresh has the edges
// by destination as the conversion of the dataset made its own; row i of fresh is that of the place touched[i], ascending.
//
// It returns a [*LimitError] if the known nodes that get an edge have more in-edges together than [Options].MaxEdges.
func (p *Predictor) overlaid(nodes []addedNode, fresh *graphops.Graph, touched []int32) (*overlay, error) {
	o := p.plain()
	if len(nodes) == 0 {
		return o, nil
	}
	o.nodes, o.news, o.at, o.total = nodes, map[int32]int{}, map[int32]int32{}, o.total+len(nodes)
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
			if r, ok := p.base.Row(place); ok {
				if edges += len(r.Sources); len(r.Sources) > most {
					hub, most = place, len(r.Sources)
				}
			}
		}
	}
	if edges > p.o.MaxEdges {
		e := &LimitError{Node: nodes[0].id, Limit: p.o.MaxEdges, Hub: nodes[0].id, Degree: edges}
		if hub >= 0 {
			e.Hub, e.Degree = p.shown(o, hub), most
		}
		return nil, e
	}
	own.Indices = make([]int32, 0, edges)
	o.data.SetLen(p.base.Edges(), edges)
	added := fresh.EdgeData()
	for _, i := range rows {
		known, _ := p.base.Row(touched[i])
		from := 0
		take := func(to int) { // the known edges up to number to
			at := len(own.Indices)
			for _, s := range known.Sources[from:to] {
				own.Indices = append(own.Indices, p.place(s))
			}
			o.data.CopyRange(at, &p.base.edges, int(known.At)+from, int(known.At)+to)
			from = to
		}
		for e := fresh.Indptr[i]; e < fresh.Indptr[i+1]; e++ {
			source := touched[fresh.Indices[e]]
			to, _ := slices.BinarySearchFunc(known.Sources[from:], source, func(s, want int32) int { return int(p.place(s)) - int(want) })
			take(from + to)
			own.Indices = append(own.Indices, source)
			o.data.CopyRange(len(own.Indices)-1, &added, int(e), int(e+1))
		}
		take(len(known.Sources))
		own.Indptr = append(own.Indptr, int64(len(own.Indices)))
	}
	o.own, o.both = own, []sample.RowArray{p.base.arrays[0], {Sources: own.Indices, Edges: &o.data}}
	return o, nil
}
