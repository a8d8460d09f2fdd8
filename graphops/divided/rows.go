package divided

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Rows returns the in-edges of the own nodes of some parts under global ids, for a
// [sample.Answerer]. The error names a part that is not on this machine.
func (b *Book) Rows(parts []int) (sample.Rows, error) {
	r := &rows{b: b, parts: make([]*Part, b.Parts()), edges: make([]graphops.EdgeData, b.Parts())}
	for _, i := range parts {
		p, err := b.Part(i)
		if err != nil {
			return nil, err
		}
		r.parts[i], r.edges[i] = p, p.Graph.EdgeData()
	}
	return r, nil
}

var _ sample.Rows = (*rows)(nil)

// rows are the rows of some parts.
type rows struct {
	b     *Book
	parts []*Part             // nil for those of others
	edges []graphops.EdgeData // by part
}

func (r *rows) Edges() graphops.EdgeShape { return r.b.ds.EdgeShape() }

func (r *rows) Row(v int32) (row sample.Row, ok bool) {
	if uint(v) >= uint(len(r.b.of)) {
		return row, false
	}
	part := r.b.of[v]
	p := r.parts[part]
	if p == nil {
		return row, false
	}
	at := r.b.rows[v]
	lo, hi := p.Graph.Indptr[at], p.Graph.Indptr[at+1]
	return sample.Row{Sources: p.Graph.Indices[lo:hi:hi], IDs: p.ds.Arrays[arrayNodes].I32, First: p.FirstEdge[at], Edges: &r.edges[part], At: lo}, true
}

// Find implements [sample.Rows].
func (r *rows) Find(nodes []int32, out []sample.Place) int {
	of, at := r.b.of, r.b.rows
	n := len(nodes)
	for i, v := range nodes {
		if uint(v) >= uint(len(of)) || r.parts[of[v]] == nil {
			n = i
			break
		}
		out[i].Array, out[i].At = of[v], int64(at[v])
	}
	for i := range out[:n] {
		o := &out[i]
		p, row := r.parts[o.Array], o.At
		lo, hi := p.Graph.Indptr[row], p.Graph.Indptr[row+1]
		o.At, o.N, o.First = lo, int32(hi-lo), p.FirstEdge[row]
	}
	return n
}

// Arrays implements [sample.Rows]: array i has the rows of part i.
func (r *rows) Arrays() []sample.RowArray {
	all := make([]sample.RowArray, len(r.parts))
	for i, p := range r.parts {
		if p != nil {
			all[i] = sample.RowArray{Sources: p.Graph.Indices, IDs: p.ds.Arrays[arrayNodes].I32, Edges: &r.edges[i], TimeOrder: p.Graph.TimeOrder}
		}
	}
	return all
}

// PartsOf returns the parts of rank r of world ranks: part p belongs to rank p·world/Parts().
func (b *Book) PartsOf(r, world int) []int {
	var mine []int
	for p, owner := range b.Ranks(world) {
		if owner == r {
			mine = append(mine, p)
		}
	}
	return mine
}

// Ranks returns the rank of each part.
func (b *Book) Ranks(world int) []int {
	ranks := make([]int, b.Parts())
	for p := range ranks {
		ranks[p] = p * world / b.Parts()
	}
	return ranks
}
