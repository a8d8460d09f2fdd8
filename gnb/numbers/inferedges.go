package numbers

import (
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// edgesOf sets the edges that are predicted: the pairs e or, if e is nil, those of the dataset. It returns an error for a dataset
// that does not fit the run.
func (p *Predictions) edgesOf(run *runs.Run, ds *gnb.Dataset, e *Edges, a *inferArgs) error {
	o, c := &a.Options, run.Config
	if ds.Graph == nil {
		return errors.New("numbers: numbers of edges need the whole graph: " + ds.WhyNoGraph())
	}
	relation := 0
	switch s := ds.Schema(); {
	case (s == nil) != (o.Relation == ""):
		return fmt.Errorf("numbers: run %s predicts edges of a dataset with types, or %s has some, but not both; take the dataset of the run", c.ID, ds.Name())
	case s != nil:
		r, err := pairs.NewRelation(s, o.Relation)
		if err != nil {
			return fmt.Errorf("numbers: run %s predicts the edges of a relation that %s does not have: %w", c.ID, ds.Name(), err)
		}
		if relation = r.Number; e != nil {
			if err := r.Check(*e); err != nil {
				return fmt.Errorf("numbers: the pairs to predict: %w", err)
			}
		}
	}
	switch have := ds.EdgeFeatureDimOf(relation); {
	case e != nil && o.EdgeWidth > 0:
		return fmt.Errorf("numbers: the network of run %s takes %d features of an edge, which pairs of nodes do not have; train with EndsOnly (--ends-only), or add the pairs to the dataset as edges without a target", c.ID, o.EdgeWidth)
	case o.EdgeWidth > 0 && have != o.EdgeWidth:
		return fmt.Errorf("numbers: %s has %d features an edge, and the network of run %s takes %d; take a dataset with the features of the run's", ds.Name(), have, c.ID, o.EdgeWidth)
	case a.Training && (c.Dataset != ds.Name() || c.Nodes != ds.Nodes() || c.Edges != ds.Edges() || ds.EdgeAnswers == nil):
		return fmt.Errorf("numbers: Training asks for the messages of run %s, whose dataset is %s with %d nodes and %d edges, and %s has %d and %d; take the dataset of the run, or leave Training out", c.ID, c.Dataset, c.Nodes, c.Edges, ds.Name(), ds.Nodes(), ds.Edges())
	}
	if e != nil {
		for i := range e.Src {
			if u, v := e.Src[i], e.Dst[i]; len(e.Dst) != len(e.Src) || u < 0 || v < 0 || int(u) >= ds.Nodes() || int(v) >= ds.Nodes() {
				return fmt.Errorf("numbers: pair %d to predict is %d → %d, and %s has the nodes 0 to %d", i, u, v, ds.Name(), ds.Nodes()-1)
			}
		}
		a.Src, a.Dst, p.Pairs = e.Src, e.Dst, e
	} else {
		at, err := o.positions(ds)
		if err != nil {
			return err
		}
		l := edgesAt(ds.Graph, at, 0)
		p.At, p.Pairs = at, &Edges{Src: l.src, Dst: l.dst}
	}
	if p.Pairs.Len() == 0 {
		return fmt.Errorf("numbers: there are no edges to predict in %s; add them to the dataset, or give pairs of nodes", ds.Name())
	}
	return nil
}

// inferEdges computes predictions of edges, which rank 0 writes, and measures those with known targets.
func inferEdges(w *gnb.Worker, a inferArgs) error {
	o, ds := &a.Options, w.Dataset()
	if a.Training && !o.AllMessages {
		rows, err := o.edgeRows(ds)
		if err != nil {
			return err
		}
		split, err := o.edgeSplit(ds, rows)
		if err != nil {
			return err
		}
		w.UseGraph(split.Message)
	}
	net, head := edgeNetwork(w, o)
	w.LoadWeights(net, a.Weights)
	w.Barrier()
	began := time.Now()
	return w.Outputs(net, nil, func(rows []float32, cols, threads int) error {
		net.Params() // the host's copies of the head's parameters are now those of the network
		l, of := edgeList{src: a.Src, dst: a.Dst}, &dataset.Dataset{}
		if !a.Pairs {
			at, err := o.positions(ds)
			if err != nil {
				return err
			}
			if l = edgesAt(ds.Graph, at, head.width); ds.EdgeAnswers != nil {
				of.Targets, of.Meta = answersAt(ds, at), ds.EdgeAnswers.Meta
			}
		}
		per := o.Columns(len(o.Options.Targets))
		share := make([]float64, len(l.src)*per) // each number is on one rank, and 0 on the others
		if err := predictEdges(w, head, rows, cols, threads, l, func(i int, out []float32) {
			for c, x := range out {
				share[i*per+c] = float64(x)
			}
		}); err != nil {
			return err
		}
		w.AllReduce(share)
		if w.Rank() != 0 {
			return nil
		}
		all := make([]float32, len(share))
		for i, x := range share {
			if all[i] = float32(x); x-x != 0 {
				return fmt.Errorf("numbers: the output for the edge %d → %d: %w; its features, or the weights, are not finite or too large", l.src[i/per], l.dst[i/per], gnb.ErrNotFinite)
			}
		}
		w.Result("seconds", time.Since(began).Seconds())
		return o.write(w, of, all, per, a.Out)
	})
}
