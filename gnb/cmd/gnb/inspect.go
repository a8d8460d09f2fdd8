package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/inspect"
)

var inspectCommand = cli.Command{Name: "inspect", Summary: "look at one batch: nodes, edges, bytes, time, neighbourhood", Run: runInspect}

// nodes is a flag of node numbers, "3,7".
type nodes []int32

func (n *nodes) String() string {
	words := make([]string, len(*n))
	for i, v := range *n {
		words[i] = strconv.Itoa(int(v))
	}
	return strings.Join(words, ",")
}

func (n *nodes) Set(s string) error {
	*n = nil
	for _, word := range strings.Split(s, ",") {
		v, err := strconv.ParseInt(word, 10, 32)
		if err != nil || v < 0 {
			return errors.New("it is a list of node numbers from 0 up, separated by commas")
		}
		*n = append(*n, int32(v))
	}
	return nil
}

func runInspect(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Measures one batch of training: the nodes and edges of each hop, how often a row is used, the time and bytes of each stage of a training step, and the neighbourhood sampled around one seed.")
	var (
		o     inspect.Options
		seeds nodes
		hops  ranks.Fanouts
	)
	fs.Var(&seeds, "seeds", "the batch's seeds, as in `3,7,12` (default those of --step)")
	fs.Var(&hops, "fanout", "neighbours per hop, seeds' hop first: `15,full` (default 10,10)")
	fs.StringVar(&o.Split, "split", "train", "split whose nodes are the seeds")
	fs.IntVar(&o.Batch, "batch", 1024, "seeds per step")
	fs.IntVar(&o.Epoch, "epoch", 0, "epoch")
	fs.IntVar(&o.Step, "step", 0, "step of the epoch")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	fs.IntVar(&o.Draw, "draw", 0, "index of the seed whose neighbourhood is drawn, from 0")
	model := fs.String("model", "sage", "model")
	fs.IntVar(&o.Hidden, "hidden", 64, "width of the hidden layers")
	fs.IntVar(&o.Threads, "threads", 0, "number of threads (default all CPUs)")
	fs.StringVar(&o.Device, "device", "auto", "auto, cpu or cuda")
	picture := fs.String("png", "", "picture `file` for the batch")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := cli.NotZero(fs, "batch", "hidden"); err != nil {
		return err
	}
	if o.Model, err = gnb.ModelByName(*model); err != nil {
		return err
	}
	o.Fanouts, o.Quiet = hops.Hops(2), out.JSON
	ds, err := options.Load(ctx, out, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	if err := noTriples(ds, "inspect", "gnb train --task triples trains one, and prints what it takes"); err != nil {
		return err
	}
	e, err := inspect.Batch(ctx, ds, seeds, o)
	if err != nil {
		return err
	}
	if err := drawTo(*picture, e.PNG); err != nil {
		return err
	}
	out.Result(e)
	out.Printf("%s", e)
	return nil
}
