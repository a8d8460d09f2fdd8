package dataset

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// checkNodeTimesShape returns an error if the times of nodes contradict the graph. It reads no values.
func (d *Dataset) checkNodeTimesShape() error {
	switch {
	case d.NodeTimes == nil:
	case d.Graph == nil || d.Meta.Parts != nil || d.Meta.Part != nil:
		return errors.New("a dataset divided into parts has no times of nodes; take the undivided dataset, or leave them out")
	case d.Graphs != nil:
		return errors.New("a dataset of many graphs has no times of nodes; each graph is one moment")
	case len(d.NodeTimes) != d.Nodes():
		return fmt.Errorf("%d times for %d nodes", len(d.NodeTimes), d.Nodes())
	}
	return nil
}

func (d *Dataset) loadNodeTimes(src source) error {
	if !d.Meta.NodeTimes || d.Graph == nil {
		return nil
	}
	a, label, err := openNPY(src, nodeTimesFile, "node_times", true)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyInt64}, d.Nodes()); err != nil {
		return err
	}
	d.NodeTimes = view[int64](a.data)
	return nil
}

// EdgesBeforeNodes counts the edges whose time is before that of one of their ends, of edges and nodes with times: as of a time, such an edge is known
// from its later end's time on. Cost: a pass over the edges.
func (d *Dataset) EdgesBeforeNodes() (n int64) {
	g := d.Graph
	if d.NodeTimes == nil || g == nil || g.EdgeTimes == nil {
		return 0
	}
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.EdgeTimes[e] < max(d.NodeTimes[v], d.NodeTimes[g.Indices[e]]) {
				n++
			}
		}
	}
	return n
}
