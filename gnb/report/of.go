package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
)

// Of computes a trained run's output for all nodes of a dataset, by [gnb.Infer] with its default options, reports on it,
// and shows the picture and the tables in the current cell. The output is computed in a temporary file, without a panel
// that shows progress; call [gnb.Infer] and [New] for that. Print the result for the tables as text.
func Of(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o Options) (*Report, error) {
	if run == nil || ds == nil {
		return nil, errors.New("report: a report needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	}
	if numbers.Trained(run) {
		return nil, fmt.Errorf("report: run %s predicts numbers; take report.OfNumbers", run.Config.ID)
	}
	if graphs.Trained(run) {
		return nil, fmt.Errorf("report: run %s predicts whole graphs; take report.OfGraphs", run.Config.ID)
	}
	if ds.Graph == nil {
		return nil, fmt.Errorf("report: %s; a report needs the edges of all nodes", ds.WhyNoGraph())
	}
	dir, err := os.MkdirTemp("", "gnb-report-")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := gnb.Infer(ctx, run, ds, filepath.Join(dir, "logits.npy"), gnb.InferOptions{Quiet: true})
	if err != nil {
		return nil, err
	}
	logits, err := out.Logits()
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	plain := o
	plain.Explain = nil
	r, err := New(ds, logits, plain)
	if err != nil {
		return nil, err
	}
	if o.Explain != nil {
		if err := r.explain(ctx, run, r.nodesOf, o); err != nil {
			return nil, err
		}
	}
	r.Model = modelName(run)
	if !o.Quiet {
		err = r.Show()
	}
	return r, err
}

// Show shows the pictures and the tables in the current cell; outside a notebook it does nothing.
func (r *Report) Show() error {
	for _, f := range r.Figures() {
		if err := f.Show(); err != nil {
			return err
		}
	}
	return showTables(r.tables(), r.String())
}

// showTables shows tables in the current cell.
func showTables(tables []table, text string) error {
	var grids []screen.Grid
	for _, t := range tables {
		g := screen.Grid{Title: t.name, Head: t.head, Rows: t.rows}
		if n := len(t.rows) - mostRows; n > 0 {
			g.Title += fmt.Sprintf(", the first %d of %d", mostRows, len(t.rows))
			g.Rows = g.Rows[:mostRows]
		}
		grids = append(grids, g)
	}
	if err := screen.ShowGrids("", grids, nil, text); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// modelName is the name of the model of a run; "" if it has recorded none.
func modelName(run *runs.Run) string {
	if m := run.Result.Model; m != nil {
		return m.Name
	}
	return ""
}
