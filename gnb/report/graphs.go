package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Graphs is the result of [OfGraphs] and [NewGraphs]: a report of the graphs' classes (one or several labels), or of their
// numbers. The other one is nil.
type Graphs struct {
	Classes *Report  `json:"classes,omitempty"`
	Numbers *Numbers `json:"numbers,omitempty"`
}

// OfGraphs computes what the network of a run of graphs.Train says of the graphs of a dataset, by [graphs.Infer], reports on it,
// and shows the pictures and tables in the current cell. Print the result for the tables as text.
//
// Graphs are compared by their number of nodes and of directed edges, and mistakes are named by the graphs' ids in the tables that
// the dataset was made of. Options.Type is refused: graphs have no types.
func OfGraphs(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o Options) (*Graphs, error) {
	if err := noReasons(o, "these are of graphs"); err != nil {
		return nil, err
	}
	if run == nil || ds == nil {
		return nil, errors.New("report: a report needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	}
	a, err := graphs.Infer(ctx, run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		return nil, err
	}
	r, err := NewGraphs(ds, a, o)
	if err != nil {
		return nil, err
	}
	if m := run.Result.Model; m != nil {
		r.named(m.Name)
	}
	if !o.Quiet {
		err = r.Show()
	}
	return r, err
}

// NewGraphs reports on answers for the graphs of a dataset, from [graphs.Infer]. The report keeps both.
func NewGraphs(ds *gnb.Dataset, a *graphs.Answers, o Options) (*Graphs, error) {
	if err := noReasons(o, "these are of graphs"); err != nil {
		return nil, err
	}
	switch {
	case ds == nil || a == nil || a.Rows == nil:
		return nil, errors.New("report: a report of graphs needs a dataset and answers for its graphs (graphs.Infer)")
	case ds.Graphs == nil:
		return nil, fmt.Errorf("report: %s: %w; report.Of and report.OfNumbers report on nodes", ds.Name(), dataset.ErrNoGraphs)
	case ds.Graph == nil:
		return nil, fmt.Errorf("report: %s; a report needs the edges of all graphs", ds.WhyNoGraph())
	case o.Type != "":
		return nil, fmt.Errorf("report: Options.Type is %q, and graphs have no types; leave it out", o.Type)
	case a.Pooled():
		return nil, errors.New("report: the answers are pooled rows (graphs.Embed), which say nothing of labels or targets; take those of graphs.Infer")
	}
	of := rows{ds: ds.NamedGraphs(), unit: "graph", whole: ds}
	r, err := &Graphs{}, error(nil)
	if !a.Numeric() {
		r.Classes, err = newReport(of, a.Rows, o)
	} else {
		if o.IDs, err = of.names(o.IDs); err != nil {
			return nil, err
		}
		r.Numbers, err = newNumbers(of, a.Rows, a.Columns(), a.Quantiles(), o)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// named names the model.
func (r *Graphs) named(model string) {
	if r.Classes != nil {
		r.Classes.Model = model
	}
	if r.Numbers != nil {
		r.Numbers.Model = model
	}
}

// String returns the report's tables as text.
func (r *Graphs) String() string {
	if r.Classes != nil {
		return r.Classes.String()
	}
	if r.Numbers != nil {
		return r.Numbers.String()
	}
	return ""
}

// Figures returns the report as pictures: those of [Report.Figures], or of [Numbers.Figures].
func (r *Graphs) Figures() []*figure.Figure {
	if r.Classes != nil {
		return r.Classes.Figures()
	}
	if r.Numbers != nil {
		return r.Numbers.Figures()
	}
	return nil
}

// Show shows the pictures and the tables in the current cell; outside a notebook it does nothing.
func (r *Graphs) Show() error {
	if r.Classes != nil {
		return r.Classes.Show()
	}
	if r.Numbers != nil {
		return r.Numbers.Show()
	}
	return nil
}
