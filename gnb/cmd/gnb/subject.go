package main

import (
	"context"
	"errors"
	"flag"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/deploy"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
)

// subject is what a command answers by: a run that its arguments name, or the model that this program has inside.
type subject struct {
	app *deploy.App // nil for a run
}

// names is the number of arguments that name the subject.
func (m subject) names() int {
	if m.app != nil {
		return 0
	}
	return 1
}

// split divides arguments into the subject's name and the rest.
func (m subject) split(args []string) (name string, rest []string) {
	if m.app != nil {
		return "", args
	}
	return args[0], args[1:]
}

// arguments are those of the usage line.
func (m subject) arguments(run, rest string) string {
	switch {
	case m.app != nil:
		return rest
	case rest == "":
		return run
	}
	return run + " " + rest
}

func (m subject) help(run, app string) string {
	if m.app != nil {
		return app
	}
	return run
}

// datasetFlag makes the flag --dataset, which an app does not have.
func (m subject) datasetFlag(fs *flag.FlagSet, to string) *string {
	if m.app != nil {
		return new(string)
	}
	return fs.String("dataset", "", "`dataset` to "+to+" (default the run's)")
}

// fanoutFlag makes the flag --fanout. An app can have a default of its own.
func (m subject) fanoutFlag(fs *flag.FlagSet, of *ranks.Fanouts) error {
	if m.app == nil || m.app.Table.Fanout == "" {
		fs.Var(of, "fanout", "neighbours per hop, the node's first: `15,full` (default full)")
		return nil
	}
	if err := of.Set(m.app.Table.Fanout); err != nil {
		return err
	}
	fs.Var(of, "fanout", "neighbours per hop, the node's first: `15,full`")
	return nil
}

// verifyFlag makes the flag --verify.
func (m subject) verifyFlag(out *cli.Output, fs *flag.FlagSet) { options.Verify(out, fs) }

// open opens the run and the dataset to answer on: a given one, else that of the run. The caller closes the dataset.
func (m subject) open(ctx context.Context, out *cli.Output, name, given string) (*runs.Run, *gnb.Dataset, error) {
	if m.app != nil {
		if out.Verify {
			if err := m.app.Check(); err != nil {
				return nil, nil, err
			}
		}
		return m.app.Run()
	}
	run, err := modelRun(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	ds, err := answeredDataset(ctx, out, run, given)
	return run, ds, err
}

// openPredictor opens a predictor of the subject. The caller closes it and the dataset.
func (m subject) openPredictor(ctx context.Context, out *cli.Output, name, given string, o predict.Options) (*predict.Predictor, *gnb.Dataset, error) {
	run, ds, err := m.open(ctx, out, name, given)
	if err != nil {
		return nil, nil, err
	}
	p, err := predict.Open(ctx, run, ds, o)
	if err != nil {
		return nil, nil, errors.Join(err, ds.Close())
	}
	return p, ds, nil
}

// checkBehind compares what of an app was not compared when it was opened. If it is damaged, ctx ends; the function waits for the comparison and
// returns its error.
func (m subject) checkBehind(ctx context.Context) (context.Context, func() error) {
	if m.app == nil || m.app.Unchecked() == 0 {
		return ctx, func() error { return nil }
	}
	ctx, end := context.WithCancel(ctx)
	found := make(chan error, 1)
	go func() {
		err := m.app.CheckUntil(ctx)
		if err != nil {
			end()
		}
		found <- err
	}()
	return ctx, func() error { end(); return <-found }
}
