package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
)

var explainCommand = cli.Command{Name: "explain", Summary: "say why a trained model answers as it does", Run: subject{}.explain}

func (m subject) explain(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags(m.arguments("RUN", "[NODE…]"), "Explains a run's answers for nodes of its dataset, by their ids: which columns, which neighbours and which edges they rest on, and what the answer becomes without them and at random. A run that predicts links explains scores of pairs (--pair), and one of whole graphs takes the ids of graphs. Methods: gradients (integrated), gradient-input, leave-out, mask (GNNExplainer). --picture draws one explanation, and --out writes all scores as a table.")
	var o explain.Options
	data := m.datasetFlag(fs, "explain on")
	method := fs.String("method", string(explain.Gradients), "gradients, gradient-input, leave-out or mask")
	fs.StringVar(&o.Output, "output", "", "class, label or target to explain (default the answer)")
	fs.StringVar(&o.Than, "than", "", "explain --output rather than this other output")
	fs.IntVar(&o.Steps, "steps", 0, "points of integrated gradients (default 50)")
	fs.IntVar(&o.Epochs, "epochs", 0, "steps of mask (default 200)")
	fs.Float64Var(&o.LR, "lr", 0, "learning rate of mask (default 0.01)")
	fs.IntVar(&o.Top, "top", 0, "edges that the fidelity removes (default a tenth)")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	picture := fs.String("picture", "", "`file` to draw one explanation into, .png or .svg")
	table := fs.String("out", "", "`file` for scores: .csv, .parquet, .arrow or .json")
	var pairs []predict.Pair
	fs.Func("pair", "ids of a pair, `SOURCE,TARGET`; may be repeated", func(text string) error {
		src, dst, ok := strings.Cut(text, ",")
		if !ok || src == "" || dst == "" {
			return errors.New("a pair is the ids of two nodes with a comma between them")
		}
		pairs = append(pairs, predict.Pair{Source: src, Target: dst})
		return nil
	})
	var p predict.Options
	fs.BoolVar(&p.Final, "final", false, "use the final weights instead of the best ones")
	var fanouts ranks.Fanouts
	if err := m.fanoutFlag(fs, &fanouts); err != nil {
		return err
	}
	fs.IntVar(&p.MaxEdges, "max-edges", 0, "edges of a neighbourhood, at most (default 4194304)")
	fs.IntVar(&p.Threads, "threads", 0, "threads (default all)")
	m.verifyFlag(out, fs)
	rest, err := out.Parse(fs, args, m.names(), -1)
	if err != nil {
		return err
	}
	name, nodes := m.split(rest)
	switch n := len(nodes) + len(pairs); {
	case n == 0:
		return cli.Usagef("nothing is to be explained; give ids of nodes, or pairs (--pair SOURCE,TARGET)")
	case len(nodes) > 0 && len(pairs) > 0:
		return cli.Usagef("a run answers for nodes or for pairs; give ids of nodes, or --pair")
	case *picture != "" && n > 1:
		return cli.Usagef("--picture is of one explanation, and %d are asked for; give one node or pair", n)
	}
	o.Method = explain.Method(*method)
	setPredict(&p, fanouts, out)
	run, ds, err := m.open(ctx, out, name, *data)
	if err != nil {
		return err
	}
	each, end, err := explainer(ctx, run, ds, nodes, pairs, p, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var all explain.Table
	began := time.Now()
	for i := range len(nodes) + len(pairs) {
		e, err := each(i)
		if err != nil {
			return err
		}
		all = append(all, e)
		if i > 0 {
			out.Printf("\n")
		}
		out.Printf("%s", e)
	}
	seconds := time.Since(began).Seconds()
	if *picture != "" {
		if err := all[0].Figure().Save(*picture); err != nil {
			return err
		}
	}
	if *table != "" {
		if err := all.Write(*table); err != nil {
			return err
		}
	}
	out.Result(map[string]any{"explanations": all, "seconds": seconds, "picture": *picture, "out": *table})
	return nil
}

// explainer opens what explains a run's answers on a dataset, which it closes, also when it fails. each explains the i-th node or pair, and end
// closes all.
func explainer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, nodes []string, pairs []predict.Pair, p predict.Options, o explain.Options) (each func(i int) (*explain.Explanation, error), end func() error, err error) {
	if graphs.Trained(run) {
		if len(pairs) > 0 {
			return nil, nil, errors.Join(cli.Usagef("run %s predicts whole graphs; give ids of graphs in place of --pair", run.Config.ID), ds.Close())
		}
		n, err := graphs.Open(ctx, run, ds, graphs.OpenOptions{Final: p.Final, Threads: p.Threads, Quiet: p.Quiet})
		if err != nil {
			return nil, nil, errors.Join(err, ds.Close())
		}
		return func(i int) (*explain.Explanation, error) { return explain.GraphWith(ctx, n, nodes[i], o) }, ds.Close, nil
	}
	of, err := predict.Open(ctx, run, ds, p)
	if err != nil {
		return nil, nil, errors.Join(err, ds.Close())
	}
	each = func(i int) (*explain.Explanation, error) {
		if i < len(pairs) {
			return explain.PairWith(ctx, of, pairs[i], o)
		}
		return explain.With(ctx, of, nodes[i], o)
	}
	return each, func() error { return errors.Join(of.Close(), ds.Close()) }, nil
}
