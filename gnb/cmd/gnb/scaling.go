package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

var scalingCommand = cli.Command{Name: "scaling", Summary: "measure how training gets faster with workers", Run: runScaling}

func runScaling(ctx context.Context, args []string, out *cli.Output) error {
	t, err := chosenTask(args)
	if err != nil {
		return err
	}
	fs := out.Flags("DATASET", "Times the same training steps with 1, 2, 4 … workers, in turn, after a warm-up. Prints the speed-up compared with the ideal, the time of a step by stage, and the repeated work. It evaluates and saves nothing. These are the flags of --task "+t.name+".")
	var (
		how     scaling.How
		workers = ranks.Counts{1, 2, 4}
		picture = fs.String("png", "", "picture `file` for the curve")
	)
	t.flags(fs, append(slices.Clone(notPlanned), "recipe", "full-graph", "workers", "epochs", "accumulate", "digest", "eval", "eval-every", "eval-batches", "metric", "best-by", "patience", "watch-test", "checkpoint-every", "keep", "restarts", "tensorboard", "title", "tags", "notes")...)
	fs.Var(&workers, "workers", "numbers of workers, as in `1,2,4`")
	fs.BoolVar(&how.Weak, "weak", false, "weak scaling, with a fixed batch per worker (--batch-per-worker)")
	fs.IntVar(&how.Repeats, "repeats", 5, "measurements per number of workers, of which the median counts")
	fs.IntVar(&how.Steps, "steps", 30, "steps per measurement")
	fs.IntVar(&how.WarmUp, "warmup", 5, "warm-up steps")
	if err := t.strange(fs, args); err != nil {
		return err
	}
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := t.checkRead(fs, nil); err != nil {
		return err
	}
	if err := cli.CountFlags(fs, "repeats", "steps", "warmup"); err != nil {
		return err
	}
	ds, err := t.load(ctx, out, fs, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	t.launch.Quiet = out.JSON
	curve, err := t.scale(ctx, ds, how, workers)
	if err != nil {
		return err
	}
	if err := drawTo(*picture, curve.PNG); err != nil {
		return err
	}
	out.Result(curve)
	out.Printf("%s", curve)
	return nil
}

// drawTo writes a picture to a file if one is named.
func drawTo(file string, draw func() ([]byte, error)) error {
	if file == "" {
		return nil
	}
	data, err := draw()
	if err == nil {
		err = atomicfile.WriteFile(file, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("drawing the picture: %w", err)
	}
	return nil
}
