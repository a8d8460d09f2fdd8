package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/linktask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
)

// resumedRun returns the run named by --resume, nil if there is none.
func resumedRun(o *gnb.TrainOptions) (*runs.Run, error) {
	if o.Resume == "" || o.Resume == gnb.Never {
		if o.ResumeChanged {
			return nil, cli.Usagef("--resume-changed needs --resume with the directory of the run")
		}
		return nil, nil
	}
	o.Resume = options.RunDir(o.Resume)
	return runs.Open(o.Resume)
}

// takeFlags sets the training flags that the user did not give to a run's values, so that "gnb
// train --resume RUN" alone resumes it.
func takeFlags(fs *flag.FlagSet, run *runs.Run, link *linktask.Flags) error {
	model, had, err := gnb.OptionsOf(run)
	var always []string // flags whose defaults differ for links
	if run.Config.Program == links.TrainProgram {
		always = []string{"dropout", "epochs"}
		model, had, err = link.Take(run)
	}
	var only []string // flags that the run can have; nil for all
	if run.Config.Program == kg.TrainProgram {
		always, only = []string{"dropout", "epochs", "lr", "eval-every"}, linktask.FlagsOfTriples
		had, err = link.TakeTriples(run)
	}
	if err != nil {
		return err
	}
	values := flag.NewFlagSet("run", flag.ContinueOnError)
	values.SetOutput(io.Discard)
	var o gnb.TrainOptions
	m := options.NewModel(values, &o)
	options.Training(values, &o)
	hops := had.Fanouts
	o = had
	*m.Name, *m.Dropout, m.Hops = model, had.Dropout, ranks.Fanouts{List: hops}
	// Options use None where flags use 0.
	for _, x := range []*float64{m.Dropout, &o.LR} {
		if *x == gnb.None {
			*x = 0
		}
	}
	if o.Epochs == gnb.None {
		o.Epochs = 0
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.Device == "" {
		given["device"] = true
	}
	for _, pair := range [][2]string{{"layers", "fanout"}, {"batch", "batch-per-worker"}} { // each determines the other
		if given[pair[0]] || given[pair[1]] {
			given[pair[0]], given[pair[1]] = true, true
		}
	}
	if !given["split"] && only == nil {
		if err := fs.Set("split", strconv.Itoa(run.Config.SplitSet)); err != nil {
			return err
		}
	}
	values.VisitAll(func(f *flag.Flag) {
		if given[f.Name] || only != nil && !slices.Contains(only, f.Name) || slices.Contains(free, f.Name) || err != nil || !slices.Contains(always, f.Name) && f.Value.String() == fs.Lookup(f.Name).DefValue {
			return // a default is there already, and a 0 that is set is one that was given
		}
		if e := fs.Set(f.Name, f.Value.String()); e != nil {
			err = fmt.Errorf("run %s has --%s %s, which is not a valid value: %w", run.Dir, f.Name, f.Value, e)
		}
	})
	return err
}

// free are the flags that change no result; they keep the given values.
var free = []string{"topology", "features", "cache", "cache-policy", "prefetch", "threads", "checkpoint-every", "keep", "restarts", "tensorboard"}
