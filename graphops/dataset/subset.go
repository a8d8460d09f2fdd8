package dataset

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// LargestComponent returns the nodes, ascending, of the largest weakly connected component of g, in
// which every node can be reached from every other if edges may be followed in both directions.
// Among components of equal size it returns the one with the smallest node. Cost: one pass over the
// edges, and 8 bytes per node.
func LargestComponent(g *graphops.Graph) []int32 {
	n := g.NumNodes()
	// The components are trees: up[v] leads to the root, which is the component's smallest node.
	up := make([]int32, n)
	for v := range up {
		up[v] = int32(v)
	}
	root := func(v int32) int32 {
		for up[v] != v {
			up[v] = up[up[v]]
			v = up[v]
		}
		return v
	}
	for v := range int32(n) {
		for _, u := range g.InNeighbors(v) {
			a, b := root(u), root(v)
			up[max(a, b)] = min(a, b)
		}
	}
	size := make([]int32, n)
	for v := range up {
		up[v] = root(int32(v))
		size[up[v]]++
	}
	best := int32(0)
	for v, s := range size {
		if s > size[best] {
			best = int32(v)
		}
	}
	var ids []int32
	for v, r := range up {
		if r == best {
			ids = append(ids, int32(v))
		}
	}
	return ids
}

// Subset returns the dataset of the nodes ids, which must ascend: its node i is node ids[i], its
// edges are those between these nodes, and its splits contain only these nodes. It shares no memory
// with d and has no directory.
//
// It returns an error if ids do not ascend or name a node that does not exist. Cost: one pass over
// everything.
func (d *Dataset) Subset(ids []int32) (*Dataset, error) {
	n := d.Nodes()
	number := make([]int32, n) // the new number plus 1; 0 means left out
	for i, v := range ids {
		if v < 0 || int(v) >= n || i > 0 && v <= ids[i-1] {
			return nil, fmt.Errorf("dataset: %s: entry %d of the nodes to keep is %d; the nodes must ascend, from 0 to %d", d.Name(), i, v, n-1)
		}
		number[v] = int32(i) + 1
	}
	s := &Dataset{Meta: d.Meta, Graph: d.Graph.Subgraph(ids), Splits: map[string][]int32{}}
	s.Meta.KnownAccuracies = slices.Clone(d.Meta.KnownAccuracies)
	if d.Features != nil {
		s.Features = &Matrix{Rows: len(ids), Cols: d.Features.Cols}
		if d.Features.Half() {
			s.Features.F16 = make([]uint16, 0, len(ids)*d.Features.Cols)
			for _, v := range ids {
				s.Features.F16 = append(s.Features.F16, d.Features.F16[int(v)*d.Features.Cols:][:d.Features.Cols]...)
			}
		} else {
			s.Features.F32 = make([]float32, len(ids)*d.Features.Cols)
			d.Features.Gather(s.Features.F32, ids, 0)
		}
	}
	if d.SparseFeatures != nil {
		s.SparseFeatures = &Sparse{}
		d.SparseFeatures.Gather(ids, s.SparseFeatures, 0)
	}
	if d.Labels != nil {
		s.Labels = make([]int32, len(ids))
		for i, v := range ids {
			s.Labels[i] = d.Labels[v]
		}
	}
	if d.MultiLabels != nil {
		s.MultiLabels = &Multi{Rows: len(ids), Cols: d.MultiLabels.Cols, Data: make([]int8, 0, len(ids)*d.MultiLabels.Cols)}
		for _, v := range ids {
			s.MultiLabels.Data = append(s.MultiLabels.Data, d.MultiLabels.Row(int(v))...)
		}
	}
	for name, split := range d.Splits {
		kept := []int32{}
		for _, v := range split {
			if number[v] > 0 {
				kept = append(kept, number[v]-1)
			}
		}
		s.Splits[name] = kept
	}
	return s, nil
}
