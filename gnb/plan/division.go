package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
)

// divided returns a sampler of a dataset in parts whose whole graph has no file here. Its batches are the run's if all parts are on
// this machine.
func (j *Job) divided(c sample.Config) (sample.Batcher, error) {
	p, err := j.open()
	if err != nil {
		return nil, err
	}
	rows, err := p.edges()
	if err != nil {
		return nil, err
	}
	a := sample.NewAnswerer(rows, sample.AnswererOptions{Picker: c.Picker, Threads: c.Threads})
	reply := make([]sample.HopReply, 1)
	return sample.NewDivided(sample.Division{
		Nodes: j.Data.Nodes(), Edges: rows.Edges(), Owners: 1, OwnerOf: []int{0}, Degrees: rows,
		Ask: func(q []sample.HopRequest) ([]sample.HopReply, error) { return reply, a.Answer(&q[0], &reply[0]) },
	}, c)
}

// partRows are the edges of the parts on this machine. A part that is elsewhere is taken to be like one that is here: with the nodes of
// both in the order of their in-degrees, which are known, a node's edges come from the nodes at the places of its counterpart's.
type partRows struct {
	rows   sample.Rows // of the parts that are here
	book   *divided.Book
	degree []int32 // of each node, its in-degree
	arrays []sample.RowArray
	like   []int     // the part that stands for each one that is elsewhere, and itself for one that is here
	order  [][]int32 // the nodes of each part by their in-degrees, if a part is elsewhere
	place  []int32   // of each node in its part's order
}

var _ sample.Rows = (*partRows)(nil)

func newPartRows(book *divided.Book) (*partRows, error) {
	r := &partRows{book: book, degree: book.InDegrees(), like: make([]int, book.Parts())}
	var all, here []int // parts on this machine, and those of them that have nodes
	for i, is := range book.Here() {
		if r.like[i] = i; is {
			all = append(all, i)
			if book.Own(i) > 0 {
				here = append(here, i)
			}
		}
	}
	if len(here) == 0 {
		return nil, fmt.Errorf("plan: no part of %s that has nodes is on this machine; plan where one is", book.Dataset().Name())
	}
	var err error
	if r.rows, err = book.Rows(all); err != nil {
		return nil, err
	}
	if r.arrays = r.rows.Arrays(); book.HasAll() {
		return r, nil
	}
	r.sort()
	for q := range r.like {
		if book.Has(q) {
			continue
		}
		at := here[q%len(here)]
		p, err := book.Part(at)
		if err != nil {
			return nil, err
		}
		ids := slices.Clone(p.Nodes())
		for i, v := range ids {
			switch book.PartOf(v) {
			case at:
				ids[i] = r.counterpart(v, q)
			case q:
				ids[i] = r.counterpart(v, at)
			}
		}
		r.like[q], r.arrays[q] = at, r.arrays[at]
		r.arrays[q].IDs = ids
	}
	return r, nil
}

// sort makes order and place.
func (r *partRows) sort() {
	r.order, r.place = make([][]int32, r.book.Parts()), make([]int32, len(r.degree))
	for v := range r.degree {
		p := r.book.PartOf(int32(v))
		r.order[p] = append(r.order[p], int32(v))
	}
	for _, of := range r.order {
		slices.SortFunc(of, func(a, b int32) int { return cmp.Or(cmp.Compare(r.degree[a], r.degree[b]), cmp.Compare(a, b)) })
		for i, v := range of {
			r.place[v] = int32(i)
		}
	}
}

// counterpart returns the node of a part that is at the place of node v in its own; v if the part has no nodes.
//
//go:noinline
func (r *partRows) counterpart(v int32, part int) int32 {
	of := r.order[part]
	if len(of) == 0 {
		return v
	}
	return of[int(r.place[v])*len(of)/len(r.order[r.book.PartOf(v)])]
}

// Row implements [sample.Rows]. An [sample.Answerer] calls Find.
func (r *partRows) Row(v int32) (row sample.Row, ok bool) {
	var at [1]sample.Place
	if ok = r.Find([]int32{v}, at[:]) == 1; ok {
		a, p := &r.arrays[at[0].Array], at[0]
		row = sample.Row{Sources: a.Sources[p.At:][:p.N], IDs: a.IDs, First: p.First, Edges: a.Edges, At: p.At}
	}
	return row, ok
}

// Find implements [sample.Rows].
func (r *partRows) Find(nodes []int32, out []sample.Place) int {
	known := nodes // whose edges stand for those of nodes
	if r.order != nil {
		known = slices.Clone(nodes)
		for i, v := range known {
			if uint(v) >= uint(len(r.place)) {
				break
			}
			known[i] = r.counterpart(v, r.like[r.book.PartOf(v)])
		}
	}
	n := r.rows.Find(known, out)
	for i, v := range nodes[:n] {
		out[i].Array = int32(r.book.PartOf(v))
	}
	return n
}

// Arrays implements [sample.Rows].
func (r *partRows) Arrays() []sample.RowArray { return r.arrays }

// Edges implements [sample.Rows].
func (r *partRows) Edges() graphops.EdgeShape { return r.rows.Edges() }

// InDegree implements [graphops.Degrees].
func (r *partRows) InDegree(v int32) int { return int(r.degree[v]) }

// LoopedDegree implements [graphops.Degrees], as if no node had an edge to itself and no edge a weight: a plan computes nothing.
func (r *partRows) LoopedDegree(v int32) float32 { return float32(r.degree[v] + 1) }

// SelfLoop implements [graphops.Degrees].
func (r *partRows) SelfLoop(int32) (weight float32, ok bool) { return 0, false }
