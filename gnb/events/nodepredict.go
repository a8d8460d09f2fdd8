package events

import (
	"context"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// NodePredictions are the answers of a run of [TrainNodes] as of a moment.
type NodePredictions struct {
	Nodes []int32
	// Names are the columns of Rows [nodes, columns]: the number, one column for each quantile, for [temporal.AskAny] the probability that
	// there is an event, or that of each given class.
	Names []string
	Rows  dataset.Matrix
	// AsOf is the time of the questions, Until the end of the window, and Events the number of events that were known.
	AsOf, Until int64
	Events      int
}

// nodesAtOnce is the number of nodes that are answered for together.
const nodesAtOnce = 4096

// PredictNodes answers the run's question about some nodes as of a moment; nil nodes are all that the question is about by then, or all that given questions are about.
//
// It computes in this process, without workers: it goes through the events of ds up to the moment, which may be more than the run has seen, and
// between more nodes. A node without an event by then gets an answer too. It returns an error for a dataset whose events have other features
// than the run's.
func PredictNodes(ctx context.Context, run *runs.Run, ds *dataset.Dataset, nodes []int32, o PredictOptions) (p NodePredictions, err error) {
	had, err := NodeOptionsOf(run)
	if err != nil {
		return p, err
	}
	if ds, err = feed.OneWidth(ctx, ds, true); err != nil { // as it was trained
		return p, err
	}
	whole, err := withEdges(ctx, ds, nil)
	if err != nil {
		return p, err
	}
	r, err := openNodeRows(whole, &had)
	if err != nil {
		return p, err
	}
	had.Threads = o.Threads
	x, err := had.nodeFeatures(ctx, ds)
	if err != nil {
		return p, err
	}
	if r.given != nil && len(r.given.nodes) > 0 { // with the steps, at whose moments memories change
		if r, err = newNodeRows(ds, &had); err != nil {
			return p, err
		}
	}
	if err := checkNodes(r.Nodes, nodes); err != nil {
		return p, err
	}
	if p.AsOf, p.Events, err = r.asOf(o, ds.Name()); err != nil {
		return p, err
	}
	p.Until = temporal.Plus(p.AsOf, r.ask.Window)
	m := had.newModel(r, x, run.Config.Nodes)
	if err := loadWeights(run, m, o.Final, ds.Name()); err != nil {
		return p, err
	}
	state, err := m.begin(false)
	if err != nil {
		return p, err
	}
	for at := 0; at < p.Events; { // some thousand events at a time, to hear of an interrupt
		if err := ctx.Err(); err != nil {
			return p, err
		}
		for more := min(p.Events, at+nodesAtOnce); at < more; {
			_, end := r.chunkOf(at)
			at = min(end, p.Events)
		}
		if err := state.happen(at, alone(o.Threads)); err != nil {
			return p, err
		}
	}
	happened := r.Head(p.Events)
	switch p.Nodes = nodes; {
	case nodes == nil && r.given != nil && len(r.given.nodes) > 0:
		p.Nodes = r.given.about()
	case nodes == nil:
		p.Nodes = r.ask.About(happened, p.AsOf)
	}
	switch {
	case r.classes == 0:
		p.Names = had.ColumnNames([]string{had.name()})
	case r.names == nil:
		p.Names = []string{"probability"}
	default:
		for _, name := range r.names {
			p.Names = append(p.Names, "probability_"+phrase.CleanLine(name))
		}
	}
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	p.Rows = dataset.Matrix{Rows: len(p.Nodes), Cols: len(p.Names)}
	for lo := 0; lo < len(p.Nodes); lo += nodesAtOnce {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		q := r.asking(happened, p.AsOf, p.Nodes[lo:min(lo+nodesAtOnce, len(p.Nodes))])
		rows, err := m.answers(f, state, q, o.Threads)
		if err != nil {
			return p, err
		}
		for _, row := range rows {
			if r.classes > 0 {
				all := probabilities(row)
				p.Rows.F32 = append(p.Rows.F32, all[len(all)-len(p.Names):]...)
				continue
			}
			to := make([]float32, len(row))
			had.Undo(to, row)
			p.Rows.F32 = append(p.Rows.F32, to...)
		}
	}
	return p, nil
}

// probabilities are those of classes with these logits.
func probabilities(logits []float32) []float32 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, z := range logits {
		sum += math.Exp(float64(z) - most)
	}
	all := make([]float32, len(logits))
	for c, z := range logits {
		all[c] = float32(math.Exp(float64(z)-most) / sum)
	}
	return all
}
