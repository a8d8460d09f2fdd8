package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

var scalingCommand = command{"scaling", "measure how training gets faster with workers", runScaling}

// counts is a flag of integers, "1,2,4".
type counts []int

func (c *counts) String() string {
	words := make([]string, len(*c))
	for i, n := range *c {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func (c *counts) Set(s string) error {
	*c = nil
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return errors.New("it is a list of whole numbers of 1 or more, separated by commas")
		}
		*c = append(*c, n)
	}
	return nil
}

func runScaling(ctx context.Context, args []string, out *output) error {
	fs := out.flags("DATASET", "Times the same training steps with 1, 2, 4 … workers, in turn, after a warm-up. Prints the speed-up compared with the ideal, the time of a step by stage, and the repeated work. It evaluates and saves nothing.")
	var (
		o       scaling.Options
		workers = counts{1, 2, 4}
		model   = modelFlagsOf(fs, &o.TrainOptions)
		split   = fs.Int("split", 0, "set of splits, for a dataset with several")
		picture = fs.String("png", "", "picture `file` for the curve")
	)
	fs.Var(&workers, "workers", "numbers of workers, as in `1,2,4`")
	fs.BoolVar(&o.Weak, "weak", false, "weak scaling, with a fixed batch per worker (--batch-per-worker)")
	fs.IntVar(&o.Repeats, "repeats", 5, "measurements per number of workers, of which the median counts")
	fs.IntVar(&o.Steps, "steps", 30, "steps per measurement")
	fs.IntVar(&o.WarmUp, "warmup", 5, "warm-up steps")
	rest, err := out.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := countFlags(fs, "repeats", "steps", "warmup"); err != nil {
		return err
	}
	m, err := model.finish(fs, &o.TrainOptions)
	if err != nil {
		return err
	}
	ds, err := loadSplitSet(ctx, out, rest[0], *split)
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Quiet = out.json
	curve, err := scaling.Measure(ctx, ds, m, o, workers)
	if err != nil {
		return err
	}
	if err := drawTo(*picture, curve.PNG); err != nil {
		return err
	}
	out.result(curve)
	out.printf("%s", curve)
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
