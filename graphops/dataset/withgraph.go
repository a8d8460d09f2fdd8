package dataset

import "github.com/graphnb/graphnb/graphops"

// WithGraph returns a dataset in memory with other edges between the same nodes: it shares features,
// labels, splits and arrays with d, which must stay open. The graph has as many nodes as d, and its types if d
// has features by type. Splits of edges, which are positions in d's graph, go. Metadata that says how d is
// stored or where it came from stays. The result is undirected if d is and g has the reverse of each edge.
// Cost: for an undirected d one pass over the edges of g.
func (d *Dataset) WithGraph(g *graphops.Graph) *Dataset {
	r := &Dataset{
		Graph: g, Features: d.Features, NodeFeatures: d.NodeFeatures, SparseFeatures: d.SparseFeatures, Labels: d.Labels, MultiLabels: d.MultiLabels, Splits: d.Splits, Arrays: d.Arrays, Meta: d.Meta,
	}
	r.Meta.Undirected = d.Meta.Undirected && g.Symmetric()
	r.Meta.NumEdges, r.Meta.Weighted = g.NumEdges(), g.EdgeWeights != nil
	return r
}
