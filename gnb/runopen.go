package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/filelock"
)

// RunsDir is where runs are kept: $GNB_RUNS, or the folder "runs" in the working
// directory, which for a notebook is the notebook's.
func RunsDir() string {
	multigpuEnter()
	return cmp.Or(envknob.Runs.Get(), "runs")
}

// OpenRun reads a run's directory. The result of a run that has not said how it
// ended is what the end of its metrics says, with the state [StateRunning], or
// [StateKilled] where no process runs it any more. A file that is damaged is an error.
func OpenRun(dir string) (*Run, error) {
	multigpuEnter()
	r, err := openRun(dir)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openRun is OpenRun, with what could be read beside an error; nil where that is
// nothing.
func openRun(dir string) (*Run, error) {
	r := &Run{Dir: dir}
	switch err := runfile.ReadJSON(filepath.Join(dir, runfile.Config), &r.Config); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("gnb: %s is not a run's directory: %w", dir, err)
	case err != nil:
		return nil, ofRun(dir, err)
	}
	state := ""
	for { // until the state and the result are of one moment
		switch err := runfile.ReadJSON(filepath.Join(dir, runfile.Result), &r.Result); {
		case errors.Is(err, os.ErrNotExist) && state != "":
			return r, r.unfinished(state)
		case errors.Is(err, os.ErrNotExist):
			state = stateOf(dir) // the result may have been written since
			continue
		case err != nil:
			r.Result = Result{}
			return r, ofRun(dir, err)
		}
		if r.Result.Values == nil {
			r.Result.Values = map[string]float64{}
		}
		return r, nil
	}
}

// ofRun names the run in an error of one of its files that cannot be read.
func ofRun(dir string, err error) error {
	if _, system := errors.AsType[*os.PathError](err); !system {
		return err
	}
	return fmt.Errorf("gnb: run %s is damaged: %w", dir, err)
}

// unfinished sets the result of a run that has not said how it ended: what the end of its metrics
// says.
func (r *Run) unfinished(state string) error {
	r.Result = Result{State: state, Values: map[string]float64{}}
	_, err := readMetricsFrom(r.Dir, r.metricsTail(), r.Result.take)
	maps.DeleteFunc(r.Result.Values, func(_ string, x float64) bool { return x != x }) // NaN is not JSON
	return runfile.IgnoreDamage(err)
}

// stateOf is the state of a run without a result: some process runs it, or it was killed. Where
// there are no locks that is not known, and it counts as running.
func stateOf(dir string) string {
	if held, err := filelock.Held(dir); held || errors.Is(err, filelock.ErrNoLocks) {
		return StateRunning
	}
	return StateKilled
}

// openToResume is OpenRun for a run that is to go on: its result is written anew, so it does not
// matter if that is damaged.
func openToResume(dir string) (*Run, error) {
	multigpuEnter()
	r, err := openRun(dir)
	if err != nil && r != nil && r.Result.State == "" {
		err = r.unfinished(stateOf(dir))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// tailBytes is how much of the metrics OpenRun reads: thousands of steps. There may
// be many runs, of millions.
const tailBytes = 1 << 20

// metricsTail is where the end of a run's metrics begins, within some line.
func (r *Run) metricsTail() int64 {
	info, err := os.Stat(filepath.Join(r.Dir, runfile.Metrics))
	if err != nil {
		return 0
	}
	return max(0, info.Size()-tailBytes)
}

// take is what an event changes of a result.
func (res *Result) take(e event) {
	switch e.Type {
	case evSteps:
		for _, r := range e.Records {
			res.Steps = r.Total
		}
	case evEpoch:
		res.Epochs, res.Loss = e.Epoch+1, e.Loss
		res.EpochSeconds = append(res.EpochSeconds, e.Seconds)
	case evMetrics:
		for _, m := range e.Values {
			res.Values[m.Name] = m.Value
		}
	}
}

// RunsOptions say which runs [Runs] lists, and in which order.
type RunsOptions struct {
	// Dir holds the runs, by default [RunsDir].
	Dir string
	// Filter keeps the runs that it holds for; see [RunTable.Filter].
	Filter string
	// Sort orders them; see [RunTable.Sort]. By default the oldest come first.
	Sort string
	// Trials also lists the trials of sweeps.
	Trials bool
	// Damaged also lists the directories that hold a run which cannot be read, with
	// the state [StateDamaged] and the reason as Result.Error.
	Damaged bool
}

// Runs are the runs in [RunsDir], oldest first, or those that the options ask for,
// of which there is at most one:
//
//	gnb.Runs(ctx, gnb.RunsOptions{Filter: "model=sage lr<0.01 test_accuracy>0.7", Sort: "-val_accuracy"})
//
// Printed, they are a table. What is no run's directory is passed over.
func Runs(ctx context.Context, options ...RunsOptions) (RunTable, error) {
	multigpuEnter()
	var o RunsOptions
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		return nil, fmt.Errorf("gnb: Runs takes one RunsOptions and got %d; put them into one", len(options))
	}
	dir := cmp.Or(o.Dir, RunsDir())
	runs, err := runsBelow(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.Config.Created.Compare(b.Config.Created) })
	t, err := RunTable(runs).Filter(o.Filter)
	if err != nil {
		return nil, err
	}
	return t.Sort(o.Sort)
}

// runsBelow are the runs in the directories within dir.
func runsBelow(ctx context.Context, dir string, o RunsOptions) (runs []*Run, err error) {
	err = runfile.Each(ctx, dir, "runs", func(dir string) error {
		switch r, err := openRun(dir); {
		case err == nil:
			runs = append(runs, r)
		case o.Trials && runfile.Exists(filepath.Join(dir, sweepFile)):
			trials, err := runsBelow(ctx, dir, RunsOptions{Damaged: o.Damaged})
			runs = append(runs, trials...)
			return err
		case o.Damaged && runfile.Exists(filepath.Join(dir, runfile.Config)):
			c := Config{ID: filepath.Base(dir)}
			if r != nil { // its configuration could be read
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

// LastRun is the run that was started last: what a new cell goes on with, since
// variables do not survive a cell.
func LastRun(ctx context.Context) (*Run, error) {
	multigpuEnter()
	runs, err := Runs(ctx)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("gnb: there are no runs in %s yet; start one with Train or Launch", RunsDir())
	}
	return runs[len(runs)-1], nil
}
