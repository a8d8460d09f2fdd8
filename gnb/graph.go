package gnb

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// UseGraph makes the worker sample from and compute on another graph of its dataset's nodes, from now on. Call it before the
// first network and loop over batches.
func (w *Worker) UseGraph(g *graphops.Graph) { w.check(w.useGraph(g)) }

// useGraph is UseGraph with its error.
func (w *Worker) useGraph(g *graphops.Graph) error {
	ds := w.Dataset()
	switch {
	case w.job.Divided:
		return fmt.Errorf("gnb: another graph cannot replace the edges of %s, for which this run asks their owners; %s", ds.Name(), feed.WithTopology(ds))
	case w.unused() != nil:
		return w.unused()
	case g.NumNodes() != ds.Nodes():
		return fmt.Errorf("gnb: a graph of %d nodes cannot replace that of %s, which has %d", g.NumNodes(), ds.Name(), ds.Nodes())
	}
	w.ds, w.feed.slices, w.feed.replaced = ds.WithGraph(g), nil, true
	w.team().UseData(w.ds)
	w.feed.fetcher.UseData(w.ds)
	if w.gpu == nil {
		return nil
	}
	old := w.gpu // it has the old edges
	w.gpu = nil
	return cmp.Or(device.Close(old), w.openDevice())
}

// unused returns an error if something has been made of the worker's graph.
func (w *Worker) unused() error {
	if len(w.nets) > 0 || w.feed.samplers.Len() > 0 || w.loop.InLoop() {
		return errors.New("gnb: the graph of a worker cannot change after its first network or loop over batches; choose it at the beginning of the program")
	}
	return nil
}

// Owners connects the ranks of a run in which each has the in-edges of its own nodes alone (Topology "divided"): a program
// that divides work by edges asks the owners for them. It belongs to the worker.
type Owners struct {
	w    *Worker
	team *feed.Team
}

// Owners returns the connection to the owners of edges, nil for a run whose workers have the whole graph.
func (w *Worker) Owners() *Owners {
	if !w.job.Divided {
		return nil
	}
	return &Owners{w, w.team()}
}

// Exchange sends send[r] to rank r and returns what each rank has sent to this one. kind names the exchange in errors.
// beside is for the goroutine that samples: its exchanges run beside those of the training step. Collective.
func (o *Owners) Exchange(kind string, beside bool, send [][]byte) ([][]byte, error) {
	return o.team.Exchange(kind, beside, send)
}

// Rows returns what each edge of the dataset has besides its ends, the rows of in-edges of this rank's nodes, and the
// rank that owns a node.
func (o *Owners) Rows() (edges graphops.EdgeShape, rows sample.Rows, owner func(v int32) int, err error) {
	t, err := o.team.Topology()
	return t.Edges, t.Rows, func(v int32) int { return t.OwnerOf[t.Part[v]] }, err
}

// Degrees returns the degrees of all nodes in a graph of which each rank has the rows of its nodes; inDegrees are those of
// all nodes. Collective.
func (o *Owners) Degrees(rows sample.Rows, inDegrees []int32) (graphops.Degrees, error) {
	return o.team.DegreesOf(rows, inDegrees)
}

// Use makes the worker sample from and compute on other edges of its dataset's nodes, from now on: rows are those of this
// rank's nodes, inDegrees of all nodes, and slices cuts out this rank's share of the nodes. Call it before the first
// network and loop over batches. Collective.
func (o *Owners) Use(rows sample.Rows, inDegrees []int32, slices func(d graphops.Degrees) graphops.Slicer) error {
	w := o.w
	if err := w.unused(); err != nil {
		return err
	}
	o.team.UseRows(rows, inDegrees)
	d, err := o.team.Degrees()
	w.feed.slices, w.feed.replaced = slices(d), true
	return err
}
