package sample

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
)

// Rows gives the in-edges of nodes under the ids of the whole graph, for an [Answerer]. Its methods
// are called by several goroutines at the same time.
type Rows interface {
	// Row returns the in-edges of node v, which may be any int32. ok is false if they are not here.
	Row(v int32) (r Row, ok bool)
	// Find sets out[i] to the place of the in-edges of nodes[i], for nodes that may be any int32, up to the first one whose
	// in-edges are not here. It returns the number of those that it has set. Its accesses to memory do not wait for each
	// other, as those of as many calls of Row do.
	Find(nodes []int32, out []Place) int
	// Arrays returns the arrays that places are in. They stay as they are.
	Arrays() []RowArray
	// Edges says what each edge has.
	Edges() graphops.EdgeShape
}

// Place says where the in-edges of a node are: N edges from number At on of an array. First is as in [Row].
type Place struct {
	Array, N  int32
	At, First int64
}

// RowArray is the edges of many rows: their sources, with IDs and Edges as in [Row].
type RowArray struct {
	Sources, IDs []int32
	Edges        *graphops.EdgeData
	// TimeOrder returns the order of the rows by time, as [graphops.Graph.TimeOrder] does for edges with times: that of a row is at
	// its At. Nil means that the order is not known; then each request of a seed with a time sorts the rows that it needs.
	TimeOrder func(byType bool) []int32
}

// row is the row at a place.
func (x *RowArray) row(p *Place) Row {
	hi := p.At + int64(p.N)
	return Row{Sources: x.Sources[p.At:hi:hi], IDs: x.IDs, First: p.First, Edges: x.Edges, At: p.At}
}

// Row is the in-edges of one node, in the order of their positions in the whole graph. Its slices
// are not written to.
type Row struct {
	// Sources are the edges' sources, ascending by their ids in the whole graph.
	Sources []int32
	// IDs translates sources: source s is node IDs[s] of the whole graph. Nil means that sources are
	// those nodes.
	IDs []int32
	// First is the CSC position, in the whole graph, of the first of the edges.
	First int64
	// Edges is what the edges have: they are its edges from number At on. Nil if they have nothing.
	Edges *graphops.EdgeData
	At    int64
}

// Weights are the edges' weights, nil if they have none.
func (r *Row) Weights() []float32 {
	if r.Edges == nil || r.Edges.Weights == nil {
		return nil
	}
	hi := r.At + int64(len(r.Sources))
	return r.Edges.Weights[r.At:hi:hi]
}

// Times are the edges' times, nil if they have none.
func (r *Row) Times() []int64 {
	if r.Edges == nil || r.Edges.Times == nil {
		return nil
	}
	hi := r.At + int64(len(r.Sources))
	return r.Edges.Times[r.At:hi:hi]
}

// Types are the edges' types, nil if they have none.
func (r *Row) Types() []uint16 {
	if r.Edges == nil || r.Edges.Types == nil {
		return nil
	}
	hi := r.At + int64(len(r.Sources))
	return r.Edges.Types[r.At:hi:hi]
}

// RowsOf returns the rows of a whole graph.
func RowsOf(g *graphops.Graph) Rows { return &wholeRows{g, g.EdgeData()} }

var _ Rows = (*wholeRows)(nil)

type wholeRows struct {
	g     *graphops.Graph
	edges graphops.EdgeData
}

func (w *wholeRows) Edges() graphops.EdgeShape { return w.edges.Shape() }

func (w *wholeRows) Row(v int32) (r Row, ok bool) {
	if uint(v) >= uint(w.g.NumNodes()) {
		return r, false
	}
	lo, hi := w.g.Indptr[v], w.g.Indptr[v+1]
	return Row{Sources: w.g.Indices[lo:hi:hi], First: lo, Edges: &w.edges, At: lo}, true
}

// Find implements [Rows].
func (w *wholeRows) Find(nodes []int32, out []Place) int {
	indptr, n := w.g.Indptr, w.g.NumNodes()
	for i, v := range nodes {
		if uint(v) >= uint(n) {
			return i
		}
		lo, hi := indptr[v], indptr[v+1]
		out[i] = Place{N: int32(hi - lo), At: lo, First: lo}
	}
	return len(nodes)
}

// Arrays implements [Rows].
func (w *wholeRows) Arrays() []RowArray {
	return []RowArray{{Sources: w.g.Indices, Edges: &w.edges, TimeOrder: w.g.TimeOrder}}
}

// translate writes the ids, in the whole graph, of a row's sources to out, which may be the same
// slice. It returns false if one of them has no id.
func (r *Row) translate(out, sources []int32) bool {
	for i, s := range sources {
		if uint(s) >= uint(len(r.IDs)) {
			return false
		}
		out[i] = r.IDs[s]
	}
	return true
}

// LoopedDegree returns what [graphops.Graph.LoopedDegree] returns for the row's node v, and the
// weight of its self-loop, NaN if it has none. Cost: one pass over the row.
func (r *Row) LoopedDegree(v int32) (degree, loop float32) {
	loop = float32(math.NaN())
	own, loops, sum := 1.0, 0, 0.0
	weights := r.Weights()
	for i, s := range r.Sources {
		if r.IDs != nil {
			s = r.IDs[s]
		}
		w := float32(1)
		if weights != nil {
			w = weights[i]
		}
		if s == v {
			loops++
			own, loop = float64(w), w
		} else if weights != nil {
			sum += float64(w)
		}
	}
	if weights == nil {
		return float32(len(r.Sources) - loops + 1), loop
	}
	return float32(sum + own), loop
}
