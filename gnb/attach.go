package gnb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/multigpu"
)

// attachEvery is how often Attach looks for what is new.
const attachEvery = 100 * time.Millisecond

// Attach shows a run that another process is running, started from another
// notebook or terminal, or by a cell whose kernel's page was closed: loss and
// metrics from the run's beginning, and then as they come, until it ends. What
// each worker does only the launching process sees.
//
// It returns the run as it ended, with an error where that failed or was
// interrupted. A run that has ended already is shown as it ended. When ctx is
// cancelled (■ in a cell) Attach returns; the run goes on.
func Attach(ctx context.Context, r *runs.Run) (*runs.Run, error) {
	multigpuEnter()
	if multigpu.InWorker() {
		return nil, errWorker
	}
	if r == nil || r.Dir == "" {
		return nil, errors.New("gnb: Attach needs a run with a directory; get one from runs.Last or runs.Open")
	}
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	dir := r.Dir
	r, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &launched{run: &runs.Run{Dir: dir, Config: r.Config}}
	v, err := newView(l, live.New(live.Options{}), l.title())
	if err != nil {
		return nil, err
	}
	v.start = r.Config.Created
	end := func(state, detail string) {
		v.snap.State, v.snap.Detail, v.snap.Left = state, detail, 0
		_ = v.sink.Close(v.snap)
	}
	tick := time.NewTicker(attachEvery)
	defer tick.Stop()
	for {
		on := goesOn(dir) // before reading: what it wrote until its end is read
		if v.read, err = runs.ReadFrom(dir, v.read, func(e runs.Event) {
			v.apply(e)
			v.report(e)
		}); runfile.IgnoreDamage(err) != nil {
			end(live.Failed, err.Error())
			return nil, err
		}
		if err != nil {
			v.print(err.Error())
		}
		if !on {
			break
		}
		v.timing()
		v.sink.Update(v.snap)
		select {
		case <-ctx.Done():
			end(v.snap.State, "no longer watched; the run goes on")
			return l.run, ctx.Err()
		case <-tick.C:
		}
	}
	if r, err = runs.Open(dir); err != nil {
		end(live.Failed, err.Error())
		return nil, err
	}
	v.snap.Elapsed = time.Duration(r.Result.Seconds * float64(time.Second))
	switch s := r.Result; s.State {
	case runs.StateDone:
		end(live.Done, "")
	case runs.StateInterrupted:
		end(live.Interrupted, s.Error)
		return r, fmt.Errorf("gnb: run %s was %w", r.Config.ID, ErrInterrupted)
	case runs.StateFailed:
		end(live.Failed, s.Error)
		return r, fmt.Errorf("gnb: run %s failed: %s", r.Config.ID, s.Error)
	default:
		why := "its process ended without saying how, as after kill -9; resume it to go on from its last checkpoint"
		end(live.Failed, why)
		return r, fmt.Errorf("gnb: run %s: %s", r.Config.ID, why)
	}
	return r, nil
}
