package recorder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu"
)

// followEvery is the interval at which Follow reads new events.
const followEvery = 100 * time.Millisecond

// Follow shows a run of another process until it ends, and returns it; also with an error, if the
// run's directory can be read. A run that is a job of Slurm is followed from its place in the queue on.
//
// When ctx is cancelled Follow returns. If the run is owned, which is the caller's own job, that
// interrupts the run: the job then writes a checkpoint and ends, which may be after Follow has returned.
func Follow(ctx context.Context, dir string, o Options, owned bool) (*runs.Run, error) {
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	r, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	p := newPanel(r.Config, o, 0)
	p.start = r.Config.Created
	for _, n := range o.Notes {
		p.print(n)
	}
	asked := ask(ctx, jobOf(dir))
	defer asked.close()
	seen := &runs.Run{Dir: dir, Config: r.Config, Result: begun()}
	end := func(state, reason string) {
		p.end(state, reason, p.snap.Elapsed)
		p.close()
	}
	var metrics os.FileInfo
	next, show := int64(0), p.apply // earlier events update the state without printing their text again
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		on := asked.on() || runfile.InUse(dir) // check before reading, so that the last read sees everything the run wrote
		restarts := seen.Result.Restarts
		if replaced(dir, &metrics) { // a restart has cut the metrics
			seen.Result, next, show = begun(), 0, p.apply
			p.restart(0)
		}
		next, err = runfile.ReadMetrics(dir, next, func(e runs.Event) {
			o.tell(e)
			if seen.Observe(e); e.Kind == runs.KindRestart && seen.Result.Restarts > restarts {
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
		show = func(e runs.Event) {
			if e.Kind != runs.KindRestart {
				p.Observe(e)
			}
		}
		asked.show(p)
		p.update()
		select {
		case <-ctx.Done():
			if owned {
				end(screen.Interrupted, asked.interrupt(dir))
				return seen, fmt.Errorf("runs: run %s was %w", r.Config.ID, runs.ErrInterrupted)
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
	if r, err = runs.Open(dir); err != nil {
		end(screen.Failed, err.Error())
		return nil, err
	}
	p.snap.Elapsed = time.Duration(r.Result.Seconds * float64(time.Second))
	switch s := r.Result; s.State {
	case runs.StateDone:
		end(screen.Done, "")
	case runs.StateInterrupted:
		end(screen.Interrupted, s.Error)
		return r, fmt.Errorf("runs: run %s was %w", r.Config.ID, runs.ErrInterrupted)
	case runs.StateFailed:
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
