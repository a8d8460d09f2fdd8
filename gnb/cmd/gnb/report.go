package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
)

var reportCommand = cli.Command{Name: "report", Summary: "say how good a trained model is and where it errs", Run: runReport}

func runReport(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags("RUN", "Reports on a run's answers for a split of its dataset: metrics, classes, confusion, calibration, where it errs, and the worst mistakes; of numbers and of whole graphs likewise; of events, how well it ranks over time and by how often a pair was seen; of node-events, its metric over time. --explain also explains a sample of the split: which columns matter for which class, and what pulls wrong answers to the wrong class. --html writes all of it with pictures as one page.")
	var o report.Options
	data := fs.String("dataset", "", "`dataset` to report on (default the run's)")
	fs.StringVar(&o.Split, "split", "", "split to report on (default test)")
	fs.StringVar(&o.Type, "type", "", "type of the nodes, if several have labels")
	fs.IntVar(&o.Mistakes, "mistakes", 0, "mistakes to list (default 10)")
	html := fs.String("html", "", "`file` for the report as a page")
	table := fs.String("out", "", "`file` for predictions: .csv, .parquet or .arrow")
	s := explain.Sample{}
	fs.IntVar(&s.Nodes, "explain", 0, "nodes of the split to explain (default none)")
	method := fs.String("method", string(explain.Gradients), "with --explain: gradients, gradient-input or leave-out")
	fs.IntVar(&s.Steps, "steps", 0, "with --explain: points of integrated gradients (default 20)")
	fs.Uint64Var(&s.Seed, "seed", 0, "with --explain: random seed of the sample")
	var fanouts ranks.Fanouts
	fs.Var(&fanouts, "fanout", "with --explain: neighbours per hop (default 10 each)")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if s.Nodes < 0 {
		return cli.Usagef("--explain is %d; give a number of nodes", s.Nodes)
	}
	if s.Nodes > 0 {
		s.Method, s.Full = explain.Method(*method), fanouts.Full
		if !fanouts.Full {
			s.Fanouts = fanouts.List
		}
		o.Explain = s
	}
	run, ds, err := subject{}.open(ctx, out, rest[0], *data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	o.Quiet = out.JSON
	r, err := reportOf(ctx, run, ds, o)
	if err != nil {
		return err
	}
	out.Printf("%s", r)
	if *html != "" {
		if err := r.WriteHTML(*html); err != nil {
			return err
		}
	}
	if *table != "" {
		if err := writePredictions(*table, r); err != nil {
			return err
		}
	}
	out.Result(map[string]any{"report": r, "html": *html, "out": *table})
	return nil
}

// reported is a report of any kind.
type reported interface {
	fmt.Stringer
	WriteHTML(path string) error
}

func reportOf(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o report.Options) (reported, error) {
	switch {
	case events.Trained(run):
		return report.OfEvents(run, o.Quiet)
	case events.TrainedNodes(run):
		return report.OfNodeEvents(run, o.Quiet)
	case numbers.Trained(run):
		return report.OfNumbers(ctx, run, ds, o)
	case graphs.Trained(run):
		return report.OfGraphs(ctx, run, ds, o)
	}
	return report.Of(ctx, run, ds, o)
}

// writePredictions writes the predictions of a report of classes.
func writePredictions(path string, r reported) error {
	of, ok := r.(*report.Report)
	if g, is := r.(*report.Graphs); is && g.Classes != nil {
		of, ok = g.Classes, true
	}
	switch {
	case !ok:
		return errors.New("--out has the probabilities of classes, and the run predicts numbers; take gnb infer --out")
	case strings.EqualFold(filepath.Ext(path), ".csv"):
		return of.WriteCSV(path)
	}
	return tables.Write(path, of)
}
