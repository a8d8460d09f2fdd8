package runs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/runfile"

	"github.com/graphnb/graphnb/gnb/internal/entry"
)

// Options select the runs that [List] returns, and their order.
type Options struct {
	// Dir holds the runs, by default [Dir].
	Dir string
	// Filter selects runs; see [Table.Filter].
	Filter string
	// Sort orders the runs; see [Table.Sort]. By default the oldest comes first.
	Sort string
	// Trials also lists the trials of sweeps.
	Trials bool
	// Damaged also lists runs that cannot be read, with the state [StateDamaged] and the reason in Result.Error.
	Damaged bool
}

// List returns the runs in [Dir], the oldest first, or those selected by the options. It takes at
// most one Options:
//
//	runs.List(ctx, runs.Options{Filter: "model=sage lr<0.01 test_accuracy>0.7", Sort: "-val_accuracy"})
//
// The list prints as a table. Directories that hold no run are skipped.
func List(ctx context.Context, options ...Options) (Table, error) {
	entry.Enter()
	var o Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		return nil, fmt.Errorf("runs: List takes one Options and got %d; put them into one", len(options))
	}
	dir := cmp.Or(o.Dir, Dir())
	runs, err := runsBelow(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.Config.Created.Compare(b.Config.Created) })
	t, err := Table(runs).Filter(o.Filter)
	if err != nil {
		return nil, err
	}
	return t.Sort(o.Sort)
}

// runsBelow returns the runs in the subdirectories of dir.
func runsBelow(ctx context.Context, dir string, o Options) (runs []*Run, err error) {
	err = runfile.Each(ctx, "runs", dir, "runs", func(dir string) error {
		switch r, err := open(dir); {
		case err == nil:
			runs = append(runs, r)
		case o.Trials && runfile.Exists(filepath.Join(dir, runfile.Sweep)):
			trials, err := runsBelow(ctx, dir, Options{Damaged: o.Damaged})
			runs = append(runs, trials...)
			return err
		case o.Damaged && runfile.Exists(filepath.Join(dir, runfile.Config)):
			c := Config{ID: filepath.Base(dir)}
			if r != nil { // the configuration is readable
				c = r.Config
			} else if info, err := os.Stat(dir); err == nil {
				c.Created = info.ModTime()
			}
			runs = append(runs, &Run{Dir: dir, Config: c, Result: Result{State: StateDamaged, Error: err.Error()}})
		}
		return nil
	})
	return runs, err
}

// Last returns the most recently started run. Use it in a new cell, because variables do not
// survive a cell.
func Last(ctx context.Context) (*Run, error) {
	entry.Enter()
	all, err := List(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("runs: there are no runs in %s yet; start one with gnb.Train or gnb.Launch", Dir())
	}
	return all[len(all)-1], nil
}
