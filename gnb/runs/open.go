package runs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/filelock"
)

// Dir is the directory that holds the runs: $GNB_RUNS, or "runs" in the working directory, which for a notebook is the
// notebook's.
func Dir() string {
	entry.Enter()
	return cmp.Or(envknob.Runs.Get(), "runs")
}

// Open reads a run's directory. A run without a result.json has the result that the end of its metrics gives, with the state
// [StateRunning], or [StateKilled] if no process trains it any more. A damaged file is an error.
func Open(dir string) (*Run, error) {
	entry.Enter()
	r, err := open(dir)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// open is Open, with what could be read beside an error; nil where that is
// nothing.
func open(dir string) (*Run, error) {
	r := &Run{Dir: dir}
	switch err := runfile.ReadJSON(filepath.Join(dir, runfile.Config), &r.Config); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("runs: %s is not a run's directory: %w", dir, err)
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
	return fmt.Errorf("runs: run %s is damaged: %w", dir, err)
}

// unfinished sets the result of a run that has not said how it ended: what the end of its metrics
// says.
func (r *Run) unfinished(state string) error {
	r.Result = Result{State: state, Values: map[string]float64{}}
	_, err := readFrom(r.Dir, r.metricsTail(), r.Result.take)
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

// OpenToResume is Open for a run that will be resumed: its result will be written again, so a damaged one is no error.
func OpenToResume(dir string) (*Run, error) {
	entry.Enter()
	r, err := open(dir)
	if err != nil && r != nil && r.Result.State == "" {
		err = r.unfinished(stateOf(dir))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// tailBytes is how much of the metrics Open reads: thousands of steps. There may
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
