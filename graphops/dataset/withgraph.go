package dataset

import "github.com/graphnb/graphnb/graphops"

// WithGraph returns a dataset in memory with other edges between the same nodes: it shares features,
// labels and splits with d, which must stay open. The graph has as many nodes as d. Metadata that
// says how d is stored or where it came from stays.
func (d *Dataset) WithGraph(g *graphops.Graph) *Dataset {
	r := &Dataset{
		Graph: g, Features: d.Features, SparseFeatures: d.SparseFeatures, Labels: d.Labels, MultiLabels: d.MultiLabels, Splits: d.Splits, Meta: d.Meta,
	}
	r.Meta.NumEdges, r.Meta.Weighted = g.NumEdges(), g.EdgeWeights != nil
	return r
}
