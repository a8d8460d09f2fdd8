package main

import (
	"context"
	"errors"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/predict"
)

var explainCommand = cli.Command{Name: "explain", Summary: "say why a trained model answers as it does for a node", Run: runExplain}

func runExplain(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags("RUN NODE…", "Explains a run's answers for nodes of its dataset, by their ids: which columns of features, which neighbours and which edges they rest on, and what the answer becomes without them and at random. Methods: gradients (integrated), gradient-input, leave-out, mask (GNNExplainer). --picture draws the explanation of one node.")
	var o explain.Options
	data := fs.String("dataset", "", "`dataset` to explain on (default the run's)")
	method := fs.String("method", string(explain.Gradients), "gradients, gradient-input, leave-out or mask")
	fs.StringVar(&o.Output, "output", "", "class, label or target to explain (default the answer)")
	fs.IntVar(&o.Steps, "steps", 0, "points of integrated gradients (default 50)")
	fs.IntVar(&o.Epochs, "epochs", 0, "steps of mask (default 200)")
	fs.Float64Var(&o.LR, "lr", 0, "learning rate of mask (default 0.01)")
	fs.IntVar(&o.Top, "top", 0, "edges that the fidelity removes (default a tenth)")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	picture := fs.String("picture", "", "`file` to draw one explanation into, .png or .svg")
	var p predict.Options
	fs.BoolVar(&p.Final, "final", false, "use the final weights instead of the best ones")
	var fanouts ranks.Fanouts
	fs.Var(&fanouts, "fanout", "neighbours per hop: `10,10` (default all)")
	fs.IntVar(&p.MaxEdges, "max-edges", 0, "edges of a neighbourhood, at most (default 4194304)")
	fs.IntVar(&p.Threads, "threads", 0, "threads (default all)")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 2, -1)
	if err != nil {
		return err
	}
	nodes := rest[1:]
	if *picture != "" && len(nodes) > 1 {
		return cli.Usagef("--picture is of one node, and %d are to be explained; give one", len(nodes))
	}
	o.Method = explain.Method(*method)
	setPredict(&p, fanouts, out)
	of, ds, err := openPredictor(ctx, out, rest[0], *data, p)
	if err != nil {
		return err
	}
	defer ds.Close()
	defer func() { err = errors.Join(err, of.Close()) }()
	var all []*explain.Explanation
	for i, id := range nodes {
		e, err := explain.With(ctx, of, id, o)
		if err != nil {
			return err
		}
		all = append(all, e)
		if i > 0 {
			out.Printf("\n")
		}
		out.Printf("%s", e)
	}
	if *picture != "" {
		if err := all[0].Figure().Save(*picture); err != nil {
			return err
		}
	}
	out.Result(map[string]any{"explanations": all, "picture": *picture})
	return nil
}
