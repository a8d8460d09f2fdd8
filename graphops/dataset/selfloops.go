package dataset

import "errors"

// WithSelfLoops is d with an edge from every node to itself, where there was none: message passing
// then takes a node's own features among its neighbours'. It shares everything but the graph's
// edges with d, which must stay open as long as it is used, and has no directory. A graph with edge
// weights is an error, because the weights of the self-loops are unknown. Cost: one pass over the
// edges, and a copy of them.
func (d *Dataset) WithSelfLoops() (*Dataset, error) {
	if d.Graph.EdgeWeights != nil {
		return nil, errors.New("dataset: " + d.Name() + " has edge weights, and self-loops need some of their own; make the graph with graphops.FromEdges, loops included")
	}
	s := &Dataset{Graph: d.Graph.AddSelfLoops(0), Features: d.Features, SparseFeatures: d.SparseFeatures, Labels: d.Labels, MultiLabels: d.MultiLabels, Splits: d.Splits, Meta: d.Meta, splitSet: d.splitSet, known: d.known}
	s.fillMeta()
	return s, nil
}
