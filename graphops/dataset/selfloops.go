package dataset

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// WithSelfLoops returns d with a self-loop added to every node without one, so that message passing
// includes a node's own features. Where edges have features, an added self-loop has the mean of those
// of the node's other in-edges, or zeros if there are none; where they have times, it has the earliest
// of all. Splits, targets and events, which are at positions of edges, go. The result shares everything except the graph's edges with d, which must stay open while the
// result is used, and has no directory. A graph with edge weights is an error, because the weights of
// the self-loops are unknown. Cost: one pass over the edges, and a copy of them.
func (d *Dataset) WithSelfLoops() (*Dataset, error) {
	if d.Meta.Parts != nil {
		return nil, errors.New("dataset: " + d.Name() + " is divided into parts; add self-loops to the undivided dataset, and divide that")
	}
	if d.Schema() != nil {
		return nil, errors.New("dataset: " + d.Name() + " has types of edges, so self-loops need relations; add them by Graph.WithSelfLoops and Dataset.WithGraph")
	}
	if d.Graph.EdgeWeights != nil {
		return nil, errors.New("dataset: " + d.Name() + " has edge weights, so self-loops need weights too; build the graph with graphops.FromWeightedEdges, including the self-loops")
	}
	loops := d.Graph.AddSelfLoops(0)
	if d.EdgeFeatureDim() > 0 || d.HasEdgeTimes() {
		var err error
		if loops, err = d.Graph.Rebuild(graphops.BuildOptions{SelfLoops: true, KeepDuplicates: true}); err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", d.Name(), err)
		}
	}
	s := &Dataset{Graph: loops, Features: d.Features, SparseFeatures: d.SparseFeatures, Labels: d.Labels, MultiLabels: d.MultiLabels, Targets: d.Targets, NodeTimes: d.NodeTimes, GraphOffsets: d.GraphOffsets, Graphs: d.Graphs, Splits: d.Splits, Meta: d.Meta, splitSet: d.splitSet, known: d.known, measured: d.measured}
	s.Describe()
	return s, nil
}
