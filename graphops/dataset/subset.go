package dataset

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// LargestComponent is [graphops.Graph.LargestComponent].
func LargestComponent(g *graphops.Graph) []int32 { return g.LargestComponent() }

// Subset returns the dataset of the nodes ids, which must ascend: its node i is node ids[i], its
// edges are those between these nodes, and its splits and events contain only these nodes and edges. It shares no memory
// with d and has no directory.
//
// It returns an error if ids do not ascend or name a node that does not exist. Cost: one pass over
// everything.
func (d *Dataset) Subset(ids []int32) (*Dataset, error) {
	n := d.Nodes()
	if d.Graphs != nil {
		return nil, fmt.Errorf("dataset: %s has %d graphs, of which single nodes cannot be left out; choose graphs instead (SubsetOfGraphs)", d.Name(), d.NumGraphs())
	}
	number := make([]int32, n) // the new number plus 1; 0 means left out
	for i, v := range ids {
		if v < 0 || int(v) >= n || i > 0 && v <= ids[i-1] {
			return nil, fmt.Errorf("dataset: %s: entry %d of the nodes to keep is %d; the nodes must ascend, from 0 to %d", d.Name(), i, v, n-1)
		}
		number[v] = int32(i) + 1
	}
	s := &Dataset{Meta: d.Meta, Graph: d.Graph.Subgraph(ids), Splits: map[string][]int32{}, measured: d.measured}
	s.Meta.KnownAccuracies = slices.Clone(d.Meta.KnownAccuracies)
	if d.Features != nil {
		s.Features = d.Features.selected(ids)
	}
	if d.SparseFeatures != nil {
		s.SparseFeatures = &Sparse{}
		d.SparseFeatures.Gather(ids, s.SparseFeatures, 0)
	}
	d.subsetTypes(s, ids, number)
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
	if d.Targets != nil {
		s.Targets = d.Targets.selected(ids)
	}
	// inSubset gives an edge, asked in ascending order, its position in s, -1 for one that is not there.
	inSubset := func() func(e int64) int64 {
		var v int32
		at, next, in := int64(0), int64(0), false // edges of d and of s so far, and whether the last one is in s
		return func(e int64) int64 {
			for ; at <= e; at++ { // positions ascend, so each edge is looked at once
				for d.Graph.Indptr[v+1] <= at {
					v++
				}
				if in = number[v] > 0 && number[d.Graph.Indices[at]] > 0; in {
					next++
				}
			}
			if !in {
				return -1
			}
			return next - 1
		}
	}
	if d.EdgeAnswers != nil {
		if err := d.keepEdgeAnswers(s, inSubset()); err != nil {
			return nil, err
		}
	}
	d.keepEvents(s, inSubset())
	if d.NodeTimes != nil {
		s.NodeTimes = make([]int64, len(ids))
		for i, v := range ids {
			s.NodeTimes[i] = d.NodeTimes[v]
		}
	}
	if err := d.keepQuestions(s, number); err != nil {
		return nil, err
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
