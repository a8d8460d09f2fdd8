package dataset

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/mapped"
)

// WithGraph returns a dataset in memory with other edges between the same nodes: it shares features,
// labels, splits and arrays with d, which must stay open. The graph has as many nodes as d, and its types if d
// has features by type. Splits and targets of edges, and events, which are at positions in d's graph, go, unless g is that graph. Metadata that says how d is
// stored or where it came from stays. The result is undirected if d is and g has the reverse of each edge.
// Cost: for an undirected d one pass over the edges of g.
func (d *Dataset) WithGraph(g *graphops.Graph) *Dataset {
	r := &Dataset{
		Graph: g, Features: d.Features, NodeFeatures: d.NodeFeatures, SparseFeatures: d.SparseFeatures, Labels: d.Labels, MultiLabels: d.MultiLabels, Targets: d.Targets, NodeTimes: d.NodeTimes, GraphOffsets: d.GraphOffsets, Graphs: d.Graphs, Splits: d.Splits, Arrays: d.Arrays, Meta: d.Meta, measured: d.measured,
	}
	r.Meta.Undirected = d.Meta.Undirected && g.Symmetric()
	r.Meta.NumEdges, r.Meta.Weighted = g.NumEdges(), g.EdgeWeights != nil
	if g == d.Graph {
		r.EdgeSplits, r.EdgeRows, r.EdgeAnswers, r.Events = d.EdgeSplits, d.EdgeRows, d.EdgeAnswers, d.Events
	} else {
		r.Meta.EdgeAnswers, r.Meta.NumEvents = nil, 0
	}
	return r
}

// WithoutZeroWeights returns the dataset without its edges of weight 0, which nothing samples and nothing predicts
// ([graphops.Graph.WithoutZeroWeights]), and their number: d itself if it has none. Otherwise the result is in memory, shares
// what else d has, and is computed from it ([Dataset.ComputedFrom]); such edges leave the splits and targets of edges and the events, too. A divided dataset
// is returned as it is, because its parts have no such edges. It returns an error if the files cannot be read.
func (d *Dataset) WithoutZeroWeights() (rest *Dataset, zeros int64, err error) {
	if d == nil || d.Graph == nil || d.Meta.Parts != nil {
		return d, 0, nil
	}
	rest = d
	err = mapped.Guard(func() error {
		var g *graphops.Graph
		if g, zeros = d.Graph.WithoutZeroWeights(); zeros == 0 {
			return nil
		}
		rest = d.WithGraph(g)
		rest.ComputedFrom(d)
		for name, at := range d.EdgeSplits {
			if rest.EdgeSplits == nil {
				rest.EdgeSplits = map[string][]int64{}
			}
			rest.EdgeSplits[name] = d.withoutZeros(at)
		}
		if err := d.keepEdgeAnswers(rest, d.numberWithoutZeros()); err != nil {
			return err
		}
		d.keepEvents(rest, d.numberWithoutZeros())
		if rest.EdgeAnswers != nil {
			rest.describeEdges(&rest.Meta)
		}
		return nil
	})
	return rest, zeros, err
}

// CheckZeroEvents returns an error if events have weight 0, and what holds no edges of weight 0 would lack them: models of
// events would see another stream there. holder is what does not hold them, such as "parts".
func (d *Dataset) CheckZeroEvents(holder string) error {
	if d.Graph == nil || d.Graph.EdgeWeights == nil {
		return nil
	}
	n := 0
	if err := mapped.Guard(func() error {
		for _, e := range d.Events {
			if d.Graph.EdgeWeights[e] == 0 {
				n++
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%d of the %d events of %s have weight 0, and %s do not hold edges of weight 0; train on the dataset's directory, or convert the column as a feature (--kinds COLUMN=number)", n, len(d.Events), d.Name(), holder)
	}
	return nil
}

// numberWithoutZeros returns the function that gives an edge, asked in ascending order, its position among the edges with a weight,
// -1 for one of weight 0.
func (d *Dataset) numberWithoutZeros() func(e int64) int64 {
	zeros, next := int64(0), int64(0) // before an edge
	return func(e int64) int64 {
		for ; next < e; next++ {
			if d.Graph.EdgeWeights[next] == 0 {
				zeros++
			}
		}
		if d.Graph.EdgeWeights[e] == 0 {
			return -1
		}
		return e - zeros
	}
}

// withoutZeros returns the ascending positions of edges as those among the edges with a weight.
func (d *Dataset) withoutZeros(at []int64) []int64 {
	kept, zeros, next := make([]int64, 0, len(at)), int64(0), int64(0)
	for _, e := range at {
		for ; next < e; next++ {
			if d.Graph.EdgeWeights[next] == 0 {
				zeros++
			}
		}
		if d.Graph.EdgeWeights[e] != 0 {
			kept = append(kept, e-zeros)
		}
	}
	return kept
}
