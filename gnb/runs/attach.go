package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/record"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// attachEvery is the interval at which Attach reads new events.
const attachEvery = 100 * time.Millisecond

// Attach shows a run of another process, started from another notebook or terminal, or by a cell
// whose page was closed. It shows loss and metrics from the run's beginning, and updates them
// until the run ends. Only the process that launched the run shows the state of each worker.
//
// A run that is a job of Slurm is followed from its place in the queue on, also from another machine
// that shares its directory.
//
// It returns the ended run, with an error if the run failed or was interrupted. For a run that has
// already ended it shows the final state. When ctx is cancelled (■ in a cell) Attach returns; the
// run continues.
func Attach(ctx context.Context, r *Run) (*Run, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	if r == nil || r.Dir == "" {
		return nil, errors.New("runs: Attach needs a run with a directory; get one from runs.Last or runs.Open")
	}
	return follow(ctx, r.Dir, following{job: jobOf(r.Dir)})
}

// following is how a run of another process is followed.
type following struct {
	record.Options
	job *cluster.Job // nil without one
	// owned is set if the run is the caller's: it is interrupted when the caller is.
	owned bool
}

// follow shows a run until it ends.
func follow(ctx context.Context, dir string, w following) (*Run, error) {
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	p := newPanel(r.Config, live.New(screen.Options{Quiet: w.Quiet}), cmp.Or(w.Title, r.Config.title()), 0)
	p.noPassing = w.Metric != "" && w.Metric != runfile.Accuracy
	p.start = r.Config.Created
	tell, _ := w.Observer.(Observer)
	for _, n := range w.Notes {
		p.print(n)
	}
	asked := w.ask(ctx)
	defer asked.close()
	seen := &Run{Dir: dir, Config: r.Config, Result: Result{State: StateRunning, Values: map[string]float64{}, Text: map[string]string{}}}
	end := func(state, reason string) {
		p.end(state, reason, p.snap.Elapsed)
		p.close()
	}
	var metrics os.FileInfo
	next, show := int64(0), p.apply // earlier events update the state without printing their text again
	tick := time.NewTicker(attachEvery)
	defer tick.Stop()
	for {
		on := asked.on() || runfile.InUse(dir) // check before reading, so that the last read sees everything the run wrote
		restarts := seen.Result.Restarts
		if replaced(dir, &metrics) { // a restart has cut the metrics
			seen.Result, next, show = Result{State: StateRunning, Values: map[string]float64{}, Text: map[string]string{}}, 0, p.apply
			p.restart(0)
		}
		next, err = readFrom(dir, next, func(e Event) {
			if tell != nil {
				tell.Observe(e)
			}
			if seen.take(e); e.Kind == KindRestart && seen.Result.Restarts > restarts {
				p.print(e.Text)
			}
			show(e)
		})
		if runfile.IgnoreDamage(err) != nil {
			end(screen.Failed, err.Error())
			return nil, err
		}
		if err != nil {
			p.print(err.Error())
		}
		if !on {
			break
		}
		show = func(e Event) {
			if e.Kind != KindRestart {
				p.Observe(e)
			}
		}
		asked.show(p)
		p.update()
		select {
		case <-ctx.Done():
			if w.owned {
				end(screen.Interrupted, asked.interrupt(dir))
				return seen, fmt.Errorf("runs: run %s was %w", r.Config.ID, ErrInterrupted)
			}
			end(p.snap.State, "no longer watched; the run continues")
			return seen, ctx.Err()
		case <-tick.C:
		}
	}
	if err := asked.failed(); err != nil {
		end(screen.Failed, err.Error())
		return seen, err
	}
	if r, err = Open(dir); err != nil {
		end(screen.Failed, err.Error())
		return nil, err
	}
	p.snap.Elapsed = time.Duration(r.Result.Seconds * float64(time.Second))
	switch s := r.Result; s.State {
	case StateDone:
		end(screen.Done, "")
	case StateInterrupted:
		end(screen.Interrupted, s.Error)
		return r, fmt.Errorf("runs: run %s was %w", r.Config.ID, ErrInterrupted)
	case StateFailed:
		end(screen.Failed, s.Error)
		return r, fmt.Errorf("runs: run %s failed: %s", r.Config.ID, s.Error)
	default:
		why := asked.vanished()
		end(screen.Failed, why)
		return r, fmt.Errorf("runs: run %s: %s", r.Config.ID, why)
	}
	return r, nil
}

// replaced reports whether the metrics in dir are another file than in the last call with this
// known.
func replaced(dir string, known *os.FileInfo) bool {
	info, err := os.Stat(filepath.Join(dir, runfile.Metrics))
	if err != nil {
		return false
	}
	was := *known
	*known = info
	return was != nil && !os.SameFile(was, info)
}
