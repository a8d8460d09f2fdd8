package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/gnb/runs"
)

var _ report.Explainer = Sample{}

// Sample explains a sample of a split for a report: see report.Options.Explain. The zero value explains 500 nodes.
type Sample struct {
	Nodes  int    // at most; 0 means 500
	Seed   uint64 // by which nodes and neighbours are drawn; 0 is a seed like any other
	Method Method // Gradients (also ""), GradientInput or LeaveOut
	Steps  int    // points of Gradients; 0 means 20
	// Fanouts are the neighbours that are drawn at each hop, as predict.Options.Fanouts; nil means 10 at each. Full takes all
	// neighbours, and leaves out nodes with more than MaxEdges edges around them; 0 means 2^17.
	Fanouts  []int
	Full     bool
	MaxEdges int
	Threads  int // 0 means all
}

// Size implements [report.Explainer].
func (s Sample) Size() (nodes int, seed uint64) { return cmp.Or(s.Nodes, 500), s.Seed }

// Explain implements [report.Explainer].
func (s Sample) Explain(ctx context.Context, run *runs.Run, ds *gnb.Dataset, all []report.Question, use func(i int, a *report.Answer) error) (notes []string, err error) {
	o := Options{Method: s.Method, Steps: cmp.Or(s.Steps, 20), columnsOnly: true}
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.Method == Mask {
		return nil, errors.New("explain: masks have no scores that add up over nodes, so Sample.Method is not mask; take gradients")
	}
	p := predict.Options{Fanouts: s.Fanouts, Seed: s.Seed, MaxEdges: cmp.Or(s.MaxEdges, 1<<17), Threads: s.Threads, Quiet: true}
	switch m := run.Result.Model; {
	case s.Full && s.Fanouts != nil:
		return nil, errors.New("explain: Sample.Full takes all neighbours, and Sample.Fanouts some; leave one of them out")
	case !s.Full && p.Fanouts == nil && m != nil:
		p.Fanouts = slices.Repeat([]int{10}, m.Config.Layers)
	}
	notes = append(notes, "by "+string(o.Method))
	if p.Fanouts != nil {
		notes = append(notes, "of "+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.Fanouts)), ", "), "[]")+" neighbours at each hop")
	}
	of, err := predict.Open(ctx, run, ds, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, of.Close()) }()
	for i, q := range all {
		var a *report.Answer
		err := of.NumberedNeighbourhood(ctx, q.Node, func(n *predict.Neighbourhood) (err error) {
			a, err = reason(ctx, n, q, o)
			return err
		})
		if limit := (*predict.LimitError)(nil); errors.As(err, &limit) {
			err, a = nil, nil
		}
		if err == nil {
			err = use(i, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// reason answers a question.
func reason(ctx context.Context, n *predict.Neighbourhood, q report.Question, o Options) (*report.Answer, error) {
	v, err := newView(ctx, of(n), o)
	if err != nil {
		return nil, err
	}
	v.output, v.than = q.Output, q.Than
	if most := max(q.Output, q.Than); most >= len(v.first) {
		return nil, fmt.Errorf("explain: output %d is asked for, and the network has %d", most, len(v.first))
	}
	s, err := v.scores()
	if err != nil {
		return nil, err
	}
	a := &report.Answer{}
	columns, raw := v.columns(s.features)
	if raw != nil {
		for _, r := range raw {
			a.Columns = append(a.Columns, report.ColumnScore{Name: r.Name, Type: r.Type, Score: r.All})
		}
	} else {
		for _, c := range columns {
			a.Columns = append(a.Columns, report.ColumnScore{Name: c.Name, Type: c.Type, Score: c.All})
		}
	}
	for i, node := range v.n.nodes {
		score := 0.0
		for _, x := range s.features[i*v.n.cols : (i+1)*v.n.cols] {
			score += x
		}
		a.Nodes = append(a.Nodes, report.NodeScore{Node: node.Number, Score: score})
	}
	return a, nil
}
