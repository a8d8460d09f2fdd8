package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Method is how scores are computed.
type Method string

// The methods.
const (
	// Gradients are integrated gradients from features that are all 0, and from masks of edges that are all 0, over the 50 points of
	// Gauss-Legendre quadrature. Source: M. Sundararajan, A. Taly, Q. Yan, "Axiomatic attribution for deep networks", ICML 2017,
	// arXiv:1703.01365.
	Gradients Method = "gradients"
	// GradientInput is the gradient of the output times the input.
	GradientInput Method = "gradient-input"
	// LeaveOut is the output less that without an edge, or with a column of the node set to 0.
	LeaveOut Method = "leave-out"
	// Mask learns a mask of each edge and of each feature. Source: R. Ying, D. Bourgeois, J. You, M. Zitnik, J. Leskovec,
	// "GNNExplainer: generating explanations for graph neural networks", NeurIPS 2019, arXiv:1903.03894.
	Mask Method = "mask"
)

// Options configure an explanation. The zero value explains the predicted class, or the first number, by integrated gradients.
type Options struct {
	Method Method // "" means Gradients
	// Output is the class, label or target that is explained, by its name; "" means the most probable class or label, or the first
	// target.
	Output string
	// Than is another class or label: then scores are those of the explained output less those of it, and say why it is the one
	// rather than the other. "" means none. Mask cannot.
	Than string
	// Steps is the number of points of Gradients, at most 200; 0 means 50. Epochs is the number of steps of Mask; 0 means 200.
	Steps, Epochs int
	// LR is the learning rate of Mask; 0 means 0.01.
	LR float64
	// Top is the number of edges whose removal the fidelity measures; 0 means a tenth of them, from 1 to 10.
	Top int
	// Seed is that of the masks at the start, and of the random explanation; 0 is a seed like any other.
	Seed uint64

	columnsOnly bool // without scores of edges
}

func (o *Options) complete() error {
	o.Method = cmp.Or(o.Method, Gradients)
	o.Steps, o.Epochs, o.LR = cmp.Or(o.Steps, 50), cmp.Or(o.Epochs, 200), cmp.Or(o.LR, 0.01)
	switch {
	case !slices.Contains([]Method{Gradients, GradientInput, LeaveOut, Mask}, o.Method):
		return fmt.Errorf("explain: there is no method %q; there are gradients, gradient-input, leave-out and mask: %w", o.Method, predict.ErrRequest)
	case o.Steps < 1 || o.Steps > mostSteps:
		return fmt.Errorf("explain: Options.Steps is %d; it is the number of points of an integral, from 1 to %d", o.Steps, mostSteps)
	case o.Epochs < 1 || o.Top < 0:
		return fmt.Errorf("explain: Options.Epochs is %d and Top %d; they cannot be negative, and Epochs not 0", o.Epochs, o.Top)
	case !(o.LR > 0):
		return fmt.Errorf("explain: Options.LR is %v; it must be above 0", o.LR)
	}
	return nil
}

const mostSteps = 200

// Node explains the answer for a node of the dataset, by its id as predict.Predictor.Nodes takes it, with the weights that a
// predict.Predictor of the run has. In a cell it draws the explanation.
//
// Errors are those of predict.Open and of [With].
func Node(ctx context.Context, run *runs.Run, ds *gnb.Dataset, id string, o Options) (*Explanation, error) {
	return opened(ctx, run, ds, func(p *predict.Predictor) (*Explanation, error) { return With(ctx, p, id, o) })
}

// Pair explains the score of a pair of nodes by a run that predicts links, as predict.Predictor.Score takes them: which columns of both
// nodes, which neighbours of both and which edges it rests on. In a cell it draws the explanation.
//
// Errors are those of predict.Open and of [PairWith].
func Pair(ctx context.Context, run *runs.Run, ds *gnb.Dataset, pair predict.Pair, o Options) (*Explanation, error) {
	return opened(ctx, run, ds, func(p *predict.Predictor) (*Explanation, error) { return PairWith(ctx, p, pair, o) })
}

func opened(ctx context.Context, run *runs.Run, ds *gnb.Dataset, explain func(p *predict.Predictor) (*Explanation, error)) (*Explanation, error) {
	p, err := predict.Open(ctx, run, ds, predict.Options{})
	if err != nil {
		return nil, err
	}
	e, err := explain(p)
	if err == nil {
		err = e.Show()
	}
	return e, errors.Join(err, p.Close())
}

// With explains the answer of a predictor for a node. The neighbourhood is what the predictor reads to answer: all in-edges or, with its fanouts, those that it draws.
//
// An unknown id is an error of kind predict.ErrUnknownNode, a neighbourhood with more edges than the predictor takes a
// *predict.LimitError, and a kind of answer that has no single output to explain, such as an embedding, predict.ErrRequest.
// Explanations of one node with the same options have the same bits for any number of threads.
func With(ctx context.Context, p *predict.Predictor, id string, o Options) (*Explanation, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var e *Explanation
	err := p.Neighbourhood(ctx, id, func(n *predict.Neighbourhood) (err error) {
		e, err = explained(ctx, of(n), o)
		return err
	})
	return e, err
}

// PairWith is [With] for the score of a pair of nodes. The neighbourhood is that of both. A run that does not predict links is an error
// of kind predict.ErrRequest.
//
// A decoder that reads the graph around the pair itself (structural) reads it whatever edges are left out: their scores are those of
// messages alone, and the explanation says so.
func PairWith(ctx context.Context, p *predict.Predictor, pair predict.Pair, o Options) (*Explanation, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var e *Explanation
	err := p.PairNeighbourhood(ctx, pair, func(n *predict.Neighbourhood) (err error) {
		e, err = explained(ctx, of(n), o)
		return err
	})
	return e, err
}

// explained explains an input.
func explained(ctx context.Context, in *input, o Options) (*Explanation, error) {
	v, err := newView(ctx, in, o)
	if err != nil {
		return nil, err
	}
	if err := v.choose(); err != nil {
		return nil, err
	}
	return v.explain()
}

// of is a neighbourhood as an input.
func of(n *predict.Neighbourhood) *input {
	in := &input{
		e: &Explanation{Run: n.Run, Dataset: n.Dataset}, of: "node " + n.ID, kind: n.Kind, outputs: n.Columns, threads: n.Threads,
		nodes: n.Nodes, ends: []int{0}, x: n.X, cols: n.Cols, space: n.Space, graph: n.Graph, blocks: n.Blocks,
		forward: func(f *nn.Fwd, x, _ *nn.Tensor) (*nn.Tensor, error) { return n.Forward(f, x) },
		number:  n.Number, relation: n.Relation, features: n.FeatureNames, tables: n.TableColumns, raw: n.Raw,
	}
	if n.Pair == nil {
		in.e.Node = n.ID
		return in
	}
	in.e.Pair, in.of = n.Pair, "the pair "+shownPair(n.Pair)
	if n.TargetRow > 0 {
		in.ends = append(in.ends, n.TargetRow)
	}
	if n.ReadsAround {
		in.e.Notes = append(in.e.Notes, "the decoder also reads which neighbours both nodes have in common; the scores of edges do not count that")
	}
	return in
}

func shownPair(p *predict.Pair) string { return p.Source + " → " + p.Target }
