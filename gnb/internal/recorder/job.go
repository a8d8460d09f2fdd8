package recorder

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

func jobOf(dir string) *cluster.Job {
	j, err := cluster.OpenJob(runfile.JobDir(dir))
	if err != nil {
		return nil // a run of this machine, whose lock tells whether it is still running
	}
	return j
}

// Submitted returns the run in dir, or in [runs.Dir] if dir is empty, that has the identity given and a
// job that trains it or waits for machines to do so, with the job's number; nil if there is none. For
// a job that was asked to stop it waits, at most a minute, until it has ended.
func Submitted(ctx context.Context, dir, identity string) (r *runs.Run, id string) {
	var all []*runs.Run
	if dir != "" {
		if r, err := runs.Open(dir); err == nil {
			all = append(all, r)
		}
	} else {
		all, _ = runs.List(ctx)
	}
	for _, r := range slices.Backward(all) {
		if r.Config.Identity == nil || r.Config.Identity.Run != identity || r.Result.State == runs.StateDone {
			continue
		}
		j := jobOf(r.Dir)
		for start := time.Now(); j != nil; time.Sleep(askOften) {
			s, err := j.State(ctx)
			if err != nil || s.Ended() {
				break
			}
			if !j.Stopping() || ctx.Err() != nil || time.Since(start) > young {
				return r, j.ID
			}
		}
	}
	return nil, ""
}

// Slurm is asked about a job at these intervals: often while the job is young, since a short one
// ends soon, seldom later, since its machines have many users.
const (
	askOften  = 500 * time.Millisecond
	askSeldom = 10 * time.Second
	young     = time.Minute
)

// asking is what Slurm says about a job.
type asking struct {
	job  *cluster.Job
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	state cluster.JobState
	known bool  // state was read
	err   error // of the last question
}

// ask begins to ask about the job, if there is one.
func ask(ctx context.Context, job *cluster.Job) *asking {
	ctx, stop := context.WithCancel(ctx)
	a := &asking{job: job, stop: stop}
	if a.job != nil {
		a.done.Go(func() {
			start := time.Now()
			for ctx.Err() == nil {
				a.once(ctx)
				pause := askOften
				if time.Since(start) > young {
					pause = askSeldom
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return a
}

func (a *asking) once(ctx context.Context) {
	s, err := a.job.State(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err = err; err == nil {
		a.state, a.known = s, true
	}
}

func (a *asking) close() {
	a.stop()
	a.done.Wait()
}

// on reports whether the job may still write into the run's directory.
func (a *asking) on() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.job != nil && (!a.known || !a.state.Ended())
}

// show shows that the job waits.
func (a *asking) show(p *panel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.job == nil || p.snap.State != screen.Starting:
	case a.err != nil:
		p.snap.Detail = a.err.Error()
	case !a.known:
		p.snap.Detail = "job " + a.job.ID + " of Slurm"
	case a.state.Waits():
		p.snap.Detail = fmt.Sprintf("job %s waits in Slurm's queue (%s)", a.job.ID, a.state.Why)
	default:
		p.snap.Detail = fmt.Sprintf("job %s on %s", a.job.ID, a.state.Nodes)
	}
}

// patience is how long an interrupted cell waits for its job's end. GoNB ends the cell 5 s after ■.
const patience = 3 * time.Second

// interrupt asks the job to end, and says what becomes of it.
func (a *asking) interrupt(dir string) string {
	if a.job == nil {
		return "interrupted"
	}
	ctx := context.Background()
	if err := a.job.Stop(ctx); err != nil {
		return fmt.Sprintf("job %s could not be asked to stop: %v", a.job.ID, err)
	}
	for start := time.Now(); time.Since(start) < patience; time.Sleep(followEvery) {
		if a.once(ctx); !a.on() && !runfile.InUse(dir) {
			return fmt.Sprintf("job %s has ended; run this again to resume from its last checkpoint", a.job.ID)
		}
	}
	return fmt.Sprintf("job %s writes a checkpoint and ends; run this again to resume from there", a.job.ID)
}

// failed returns the error of a job that never ran the program.
func (a *asking) failed() error {
	if a.job == nil {
		return nil
	}
	return a.job.NotShared(a.state)
}

// vanished says why there is no result.
func (a *asking) vanished() string {
	if a.job == nil {
		return "its process ended without writing a result, as after kill -9; resume it to continue from its last checkpoint"
	}
	why := fmt.Sprintf("job %s ended without writing a result (%s, exit status %d)", a.job.ID, a.state.Name, a.state.Exit)
	if out := a.job.Output(20); out != "" {
		return why + "; the end of its output:\n" + out
	}
	return why
}
