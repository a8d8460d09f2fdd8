package main

import (
	"context"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/parts"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/internal/machine"
)

var partitionCommand = cli.Command{Name: "partition", Summary: "divide a graph into parts with few edges between them", Run: runPartition}

func runPartition(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Divides the nodes of a graph into parts of about the same size with few edges between them, and prints how many edges are cut and how many nodes of other parts each part needs.")
	var o parts.Options
	n := fs.Int("parts", 2, "number of parts")
	fs.StringVar(&o.Method, "method", partition.Multilevel, strings.Join(partition.Methods(), ", "))
	fs.StringVar(&o.Preset, "preset", partition.Fast, "effort of multilevel: "+strings.Join(partition.Presets(), ", "))
	fs.StringVar(&o.Balance, "balance", "nodes", "balanced quantities, comma-separated: nodes, edges, splits such as train")
	fs.Float64Var(&o.Imbalance, "imbalance", 0.03, "largest excess of a part over the mean (0: 0.03)")
	fs.StringVar(&o.Out, "out", "", "`directory` for the dataset in parts, to train on")
	fs.BoolVar(&o.NoTopology, "no-topology", false, "write no whole graph into --out")
	var hops ranks.Fanouts
	fs.Var(&hops, "fanout", "fanouts of the sampled batches measured (default 10,10)")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	fs.IntVar(&o.Threads, "threads", 0, "number of threads (default all CPUs)")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	o.Quiet, o.Fanouts = out.JSON, hops.List
	ds, err := options.Load(ctx, out, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	r, err := parts.Divide(ctx, ds, *n, o)
	if err != nil {
		return err
	}
	out.Result(struct {
		parts.Division
		PeakRSSBytes int64 `json:"peak_rss_bytes"`
	}{r, machine.PeakRSS()})
	out.Printf("%s", r)
	return nil
}
