package main

import (
	"context"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/internal/phrase"
)

var sampleCommand = cli.Command{Name: "sample", Summary: "sample mini-batches: speed and digest", Run: runSample}

func runSample(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Samples an epoch of mini-batches without training on them, and prints the digest of what was sampled, which is the same for every number of workers and threads.")
	ranks.InsecureFlag(fs)
	var (
		o    gnb.SampleOptions
		hops ranks.Fanouts
	)
	fs.Var(&hops, "fanout", "neighbours per hop, seeds' hop first: `15,full` (default 10,10)")
	ranks.RelationFlag(fs, &o.RelationFanouts)
	ranks.SamplerFlags(fs, &o.Sampler, &o.BatchDependency, &o.LayerDependency)
	fs.StringVar(&o.Split, "split", "train", "split whose nodes are the seeds")
	fs.IntVar(&o.Batch, "batch", 1024, "seeds per step over all workers")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	fs.IntVar(&o.Epoch, "epoch", 0, "epoch")
	fs.BoolVar(&o.Cooperative, "cooperative", false, "workers make one batch together and repeat no work")
	fs.StringVar(&o.Topology, "topology", "", "edges of a dataset in parts: replicated or divided")
	ranks.RowFlags(fs, &o.Cache, &o.CachePolicy, &o.Prefetch)
	fs.IntVar(&o.Steps, "steps", 0, "number of steps (default the whole split)")
	fs.IntVar(&o.Workers, "workers", 0, "number of worker processes (default one)")
	fs.IntVar(&o.Threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	fs.StringVar(&o.Device, "device", "auto", "auto, cpu or cuda")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := cli.NotZero(fs, "batch", "batch-dependency"); err != nil {
		return err
	}
	o.Fanouts, o.Quiet = hops.Hops(2), out.JSON
	ds, err := options.Load(ctx, out, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	r, err := gnb.Sample(ctx, ds, o)
	if err != nil {
		return err
	}
	out.Result(r)
	out.Printf("%d batches, %d edges, %d nodes in %.3f s: %.3g edges/s\n", r.Batches, r.Edges, r.Nodes, r.Seconds, r.EdgesPerSecond)
	if r.MovedBytes > 0 || r.Nodes != r.UniqueNodes {
		out.Printf("edges × %.2f, rows × %.2f of one worker's; %s moved between workers\n",
			float64(r.Edges)/float64(max(1, r.UniqueEdges)), float64(r.Nodes)/float64(max(1, r.UniqueNodes)), phrase.Bytes(r.MovedBytes))
	}
	if r.Rows != nil {
		out.Printf("rows of features: %v\n", *r.Rows)
	}
	out.Printf("digest %s\n", r.Digest)
	return nil
}
