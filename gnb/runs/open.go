package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/filelock"
)

// Dir returns the directory that holds the runs: $GNB_RUNS, or "runs" in the working directory,
// which for a notebook is the notebook's directory.
func Dir() string {
	entry.Enter()
	return cmp.Or(envknob.Runs.Get(), "runs")
}

// Open reads a run's directory. For a run without a result.json it reads the result from the end
// of the metrics, with the state [StateRunning], or [StateKilled] if no process trains the run any
// more. A damaged file is an error. For a damaged result.json that is a [DamagedResult], and Open also
// returns the run, with a result from the metrics.
func Open(dir string) (*Run, error) {
	entry.Enter()
	r, err := open(dir)
	if damaged, ok := errors.AsType[*DamagedResult](err); ok {
		if err := r.unfinished(stateOf(dir)); err != nil {
			return nil, err
		}
		return r, damaged
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// OpenFS opens a run whose files are in a file system, such as a section of another file: config.json, result.json and the
// weights. name is the name of fsys in errors, and [Run.Dir]. Methods that read other files of the run find none.
func OpenFS(fsys fs.FS, name string) (*Run, error) {
	entry.Enter()
	r := &Run{Dir: name, files: fsys}
	for file, into := range map[string]any{runfile.Config: &r.Config, runfile.Result: &r.Result} {
		b, err := fs.ReadFile(fsys, file)
		if err == nil {
			err = runfile.ParseJSON("runs", filepath.Join(name, file), b, into)
		}
		if err != nil {
			return nil, ofRun(name, err)
		}
	}
	if r.Result.Values == nil {
		r.Result.Values = map[string]float64{}
	}
	return r, nil
}

// DamagedResult is the error of a run whose result.json cannot be read while the rest can, so that
// the run can still be resumed.
type DamagedResult struct{ Err error }

func (e *DamagedResult) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DamagedResult) Unwrap() error { return e.Err }

// open is Open, but with an error it also returns the parts of the run that could be read; nil if
// there are none.
func open(dir string) (*Run, error) {
	r := &Run{Dir: dir}
	switch err := runfile.ReadJSON("runs", filepath.Join(dir, runfile.Config), &r.Config); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("runs: %s is not a run's directory: %w", dir, err)
	case err != nil:
		return nil, ofRun(dir, err)
	}
	state := ""
	for { // until state and result are consistent
		switch err := runfile.ReadJSON("runs", filepath.Join(dir, runfile.Result), &r.Result); {
		case errors.Is(err, os.ErrNotExist) && state != "":
			return r, r.unfinished(state)
		case errors.Is(err, os.ErrNotExist):
			state = stateOf(dir) // the result may have been written in the meantime
			continue
		case err != nil:
			r.Result = Result{}
			return r, &DamagedResult{ofRun(dir, err)}
		}
		if r.Result.Values == nil {
			r.Result.Values = map[string]float64{}
		}
		return r, nil
	}
}

// ofRun adds the run's name to an error from reading one of its files.
func ofRun(dir string, err error) error {
	if _, system := errors.AsType[*os.PathError](err); !system {
		return err
	}
	return fmt.Errorf("runs: run %s is damaged: %w", dir, err)
}

// unfinished sets the result of a run without a result.json from the end of its metrics.
func (r *Run) unfinished(state string) error {
	r.Result = Result{State: state, Values: map[string]float64{}}
	_, err := runfile.ReadMetrics(r.Dir, r.metricsTail(), r.Observe)
	r.Result.Restarts = len(r.Config.Restarts)                                         // the end of the metrics may not have all
	maps.DeleteFunc(r.Result.Values, func(_ string, x float64) bool { return x != x }) // NaN is not JSON
	return runfile.IgnoreDamage(err)
}

// stateOf returns the state of a run without a result: running if a process holds its lock, else
// killed. On systems without locks the state is unknown and counts as running.
func stateOf(dir string) string {
	if held, err := filelock.Held(dir); held || errors.Is(err, filelock.ErrNoLocks) {
		return StateRunning
	}
	return StateKilled
}

// tailBytes is the number of bytes that Open reads from the end of the metrics: thousands of
// steps. Runs can be many and have millions of steps, so Open does not read all.
const tailBytes = 1 << 20

// metricsTail returns the offset at which Open starts to read a run's metrics; it may be inside a
// line.
func (r *Run) metricsTail() int64 {
	info, err := os.Stat(filepath.Join(r.Dir, runfile.Metrics))
	if err != nil {
		return 0
	}
	return max(0, info.Size()-tailBytes)
}
