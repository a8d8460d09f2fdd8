package main

import (
	"context"
	"flag"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/sweep"
)

// repeated is what "gnb sweep --seeds N" repeats.
type repeated struct {
	n       int
	base    *options.Nodes
	o       sweep.Options
	params  int // number of --param
	dataset string
	png     string
}

// repeatResult is the result of "gnb sweep --seeds N".
type repeatResult struct {
	Dir    string          `json:"dir"`
	State  string          `json:"state"`
	Seeds  []uint64        `json:"seeds"`
	Values []sweep.Summary `json:"values"`
	Runs   []string        `json:"runs"`
}

// runRepeat trains with several seeds, and prints the mean and deviation of the results.
func runRepeat(ctx context.Context, out *cli.Output, fs *flag.FlagSet, r repeated) error {
	other := ""
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "method", "trials", "minimize", "levels", "min-epochs", "reduction":
			other = f.Name
		}
	})
	switch {
	case r.params > 0:
		return cli.Usagef("--seeds and --param exclude each other: --param seed=1,2,3 is one of several parameters, and --seeds N repeats one configuration")
	case other != "":
		return cli.Usagef("--%s is for a search, and --seeds repeats one configuration; leave one of them out", other)
	}
	if f := fs.Lookup("parallel"); f.Value.String() == f.DefValue {
		r.o.Parallel = 0 // as many as the machine has room for
		fs.Visit(func(g *flag.Flag) {
			if g == f {
				r.o.Parallel = 1
			}
		})
	}
	r.base.Metric = r.o.Metric // a result, not a value to optimise
	m, ds, err := r.base.Load(ctx, out, fs, r.dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	r.o.Quiet = out.JSON
	r.o.Events = func(t sweep.TrialResult) { trialEvent(out, t) }
	got, err := sweep.Repeat(ctx, r.n, ds, m, r.base.TrainOptions, r.o)
	if got != nil && len(got.Runs) > 0 {
		out.Printf("%s", got)
	}
	if err != nil {
		return err
	}
	if err := drawTo(r.png, got.Study.PNG); err != nil {
		return err
	}
	res := repeatResult{Dir: got.Study.Dir, State: got.Study.State, Seeds: got.Seeds, Values: got.Summaries()}
	for _, run := range got.Runs {
		res.Runs = append(res.Runs, run.Dir)
	}
	out.Result(res)
	return nil
}
