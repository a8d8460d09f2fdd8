package main

import (
	"context"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
)

var inferCommand = cli.Command{Name: "infer", Summary: "compute a trained run's output for all nodes", Run: runInfer}

func runInfer(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Computes the output of a run's model for every node of a dataset, with all neighbours. The workers divide the nodes. It writes a NumPy array float32 [nodes, classes], the logits, or with --layer a hidden layer's output, and, if the dataset was made of tables, the original ids beside it, one a line of FILE.ids.txt; or, if FILE ends in .csv, .json, .jsonl, .parquet, .arrow or .feather, the id, the most probable class and its probability of each node. For a run that predicts links these are embeddings [nodes, columns]; with --pairs it scores pairs of nodes, and with --recommend it writes the best K nodes for each, as rows or, if FILE ends in .npy, as an array. Another ending is refused. For a run that predicts numbers, these are the numbers in the unit of the targets, [nodes, columns] or rows of the id and each target. If they are numbers of edges, there is a row for each edge that has a row of targets in the dataset, also an unknown one, with the ids of its source and target, or for each pair of --pairs. For a run that predicts graphs it writes a row for each graph: its original id or its number, and the class and its probability, the probability of each of several labels, or the numbers; as an array logits or numbers, and with --pooled the rows of which the answers are made. For a run on events, --recommend writes the likeliest K destinations of the next event of each node, and --pairs scores pairs, as of the time --as-of. For a run of node-events it writes the id, the time and the answer of each node as of that time. For a run on a knowledge graph, --triples scores triples, and --complete finds heads or tails.")
	ranks.InsecureFlag(fs)
	var o gnb.InferOptions
	dir := fs.String("run", "", "the `run`, or its directory (default the last one)")
	file := fs.String("out", "", "`file` to write: .npy, .csv, .json, .jsonl, .parquet or .arrow")
	fs.BoolVar(&o.Final, "final", false, "use the final weights instead of the best ones")
	fs.IntVar(&o.Layer, "layer", 0, "hidden `layer` to write, from 1; 0 means the logits")
	pooled := fs.Bool("pooled", false, "graphs: write each graph's pooled row, an embedding")
	ranks.InferFlags(fs, &o.Workers, &o.Threads, &o.Device, &o.Features)
	link := newLinkInfer(fs)
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if *file == "" {
		return cli.Usagef("--out is missing; give the file to write, as in --out FILE.npy")
	}
	run, err := runs.Last(ctx)
	if *dir != "" {
		run, err = options.OpenRun(*dir)
	}
	if err != nil {
		return err
	}
	if err := link.check(run); err != nil {
		return cli.Usagef("%s", err)
	}
	ds, err := options.Load(ctx, out, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Quiet = out.JSON
	if *pooled && !graphs.Trained(run) {
		return cli.Usagef("--pooled is for runs that predict graphs, and run %s predicts something else; leave it out", run.Config.ID)
	}
	if graphs.Trained(run) {
		return inferGraphs(ctx, out, run, ds, *file, *pooled, o)
	}
	if events.TrainedNodes(run) {
		return link.inferNodeEvents(ctx, out, run, ds, *file, o)
	}
	if events.Trained(run) {
		return link.inferEvents(ctx, out, run, ds, *file, o)
	}
	if link.chosen(run) {
		if o.Layer != 0 {
			return cli.Usagef("--layer %d: this run predicts links, and its embeddings are those of the last layer; leave --layer out", o.Layer)
		}
		r, err := link.run(ctx, run, ds, *file, o)
		if err != nil {
			return err
		}
		out.Result(r)
		out.Printf("%s\n", r)
		return nil
	}
	if numbers.Trained(run) {
		r, err := inferNumbers(ctx, run, ds, *file, link, o)
		if err != nil {
			return err
		}
		out.Result(r)
		out.Printf("%s\n", r.InferResult)
		return nil
	}
	r, err := inferNodes(ctx, run, ds, *file, o)
	if err != nil {
		return err
	}
	fields := map[string]any{"nodes": r.Nodes, "seconds": r.Seconds, "weights": r.Weights, "out": r.Out}
	if said := r.Notices(); len(said) > 0 {
		fields["notices"] = said
	}
	words := ""
	if !math.IsNaN(r.Value) {
		fields[r.Metric] = r.Value
		words = fmt.Sprintf(", %s %.4f", r.Metric, r.Value)
	}
	out.Result(fields)
	out.Printf("%d nodes in %.3f s%s\n%s\n", r.Nodes, r.Seconds, words, r.Out)
	return nil
}
