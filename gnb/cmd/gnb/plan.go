package main

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/linktask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/internal/phrase"
)

var planCommand = cli.Command{Name: "plan", Summary: "predict memory, bytes and time of training before it runs", Run: runPlan}

func runPlan(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Predicts what gnb train with the same flags takes, without starting a worker: the memory of each worker, the bytes of a batch by stage and by source, and the time of a step, also with other numbers of workers and in other modes. The first plan measures this machine's rates for about five seconds, and keeps them.")
	var (
		o     gnb.TrainOptions
		model = options.WithSplit(fs, &o)
		again = fs.Bool("calibrate", false, "measure the machine's rates again")
		gpu   = fs.String("gpu-memory", "", "plan for GPUs with `24GB` free, here or not")
	)
	options.Training(fs, &o)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	m, ds, err := model.Load(ctx, out, fs, &o, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	if err := linktask.NoTriples(ds, "plan"); err != nil {
		return err
	}
	if *again {
		if _, err := plan.Measured(true); err != nil {
			return err
		}
	}
	if *gpu != "" {
		free, err := phrase.ParseBytes(*gpu)
		if err != nil {
			return fmt.Errorf("--gpu-memory is %q; it is a number of bytes above 0, such as 24GB", *gpu)
		}
		ctx = plan.ForGPU(ctx, free)
	}
	o.Quiet = out.JSON
	p, err := gnb.Plan(ctx, ds, m, o)
	if err != nil {
		return err
	}
	out.Result(p)
	out.Printf("%s", p)
	return nil
}
