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
	"github.com/graphnb/graphnb/gnb/internal/launch"
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
	if o.From != "" {
		return nil, cli.Usagef("--from begins a new run with the weights of another one, and --resume continues a run; give one of them")
	}
	return launch.OpenToResume(o.Resume)
}

// resumeFlags makes the flags that say where a run is, and whether it resumes one.
func resumeFlags(fs *flag.FlagSet, o *gnb.TrainOptions) {
	fs.StringVar(&o.Resume, "resume", "", "`run` to resume, or never (default the last interrupted run)")
	fs.BoolVar(&o.ResumeChanged, "resume-changed", false, "resume even if data or flags differ, and record it")
	fs.Func("from", "`run` whose weights the new run starts with", func(name string) error {
		o.From = options.RunDir(name)
		return nil
	})
	fs.StringVar(&o.RunDir, "run", "", "`directory` of the run (default a new one in runs)")
}

// datasetOf returns the dataset of the arguments rest, else that of the run to resume, nil for none.
func datasetOf(rest []string, old *runs.Run) (spec string, err error) {
	switch {
	case len(rest) > 0:
		return rest[0], nil
	case old == nil:
		return "", cli.Usagef("the DATASET is missing")
	case old.DatasetSpec() == "":
		return "", cli.Usagef("run %s did not record where its dataset %s came from; give DATASET", old.Dir, old.Config.Dataset)
	}
	return old.DatasetSpec(), nil
}

// givenFlags returns the flags that a run does not set: those that the user gave, with both flags of a pair, of which each
// determines the other, and --device if the run's is "".
func givenFlags(fs *flag.FlagSet, device string, pairs ...[2]string) map[string]bool {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if device == "" {
		given["device"] = true
	}
	for _, pair := range pairs {
		if given[pair[0]] || given[pair[1]] {
			given[pair[0]], given[pair[1]] = true, true
		}
	}
	return given
}

// setFrom sets the flags that take chooses to the values that a run has.
func setFrom(fs, values *flag.FlagSet, run *runs.Run, take func(f *flag.Flag) bool) (err error) {
	values.VisitAll(func(f *flag.Flag) {
		if err != nil || !take(f) {
			return
		}
		if e := fs.Set(f.Name, f.Value.String()); e != nil {
			err = fmt.Errorf("run %s has --%s %s, which is not a valid value: %w", run.Dir, f.Name, f.Value, e)
		}
	})
	return err
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
	given := givenFlags(fs, o.Device, [2]string{"layers", "fanout"}, [2]string{"batch", "batch-per-worker"})
	if !given["split"] && only == nil {
		if err := fs.Set("split", strconv.Itoa(run.Config.SplitSet)); err != nil {
			return err
		}
	}
	if run.Config.Program != links.TrainProgram && run.Config.Program != kg.TrainProgram && !given["metric"] {
		if err := fs.Set("metric", had.Metric); err != nil {
			return err
		}
	}
	return setFrom(fs, values, run, func(f *flag.Flag) bool {
		if given[f.Name] || only != nil && !slices.Contains(only, f.Name) || slices.Contains(free, f.Name) {
			return false
		}
		// A default is there already, and a 0 that is set is one that was given.
		return slices.Contains(always, f.Name) || f.Value.String() != fs.Lookup(f.Name).DefValue
	})
}

// free are the flags that change no result; they keep the given values.
var free = []string{"topology", "features", "cache", "cache-policy", "prefetch", "gpu-cache", "threads", "checkpoint-every", "keep", "restarts", "tensorboard", "title", "tags", "notes"}
