package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/recorder"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/multigpu"
)

// runWorkers runs the workers until they have done their work, and starts them again after failures as
// often as the options allow.
func (l *launched) runWorkers(ctx context.Context, rec *recorder.Recorder) error {
	again := multigpu.Restarts{Max: l.o.Restarts, Ranks: l.o.Workers * l.o.VirtualRanks}
	if l.ranks > 0 {
		again.Max, l.o.Threads = 0, l.threads // its ranks are the launcher's to start again
	}
	for {
		f, err := saving.OpenCheckpoint(l.job.Checkpoint)
		if err != nil {
			return err
		}
		if l.job.Handed = f != nil; l.job.Handed {
			l.files = append(l.files, f)
		}
		g, err := multigpu.Start(ctx, multigpu.Spec{
			World: l.o.Workers, Job: l.job, Files: l.files, Threads: l.o.Threads, RunID: l.run.Config.ID,
			Stall: l.o.StallAfter, OnEvent: rec.Receive, OnOutput: rec.Output,
		})
		if err == nil {
			rec.Watch(ctx, g)
			err = g.Wait()
		}
		next, refused := again.Next(l.o.Workers, err)
		if refused != "" {
			return fmt.Errorf("%w; it is not started again: %s", err, refused)
		}
		if next == 0 {
			return err
		}
		if cause := context.Cause(ctx); cause != nil { // interrupted since the failure
			return &multigpu.Interrupted{RunID: l.run.Config.ID, Epoch: -1, Step: -1, Cause: cause, Err: err}
		}
		if failed := l.restart(err, next, rec); failed != nil {
			return errors.Join(err, fmt.Errorf("gnb: starting again after that: %w", failed))
		}
	}
}

// restart prepares the next start of a run that ended with err, with the given number of workers,
// from the last checkpoint.
func (l *launched) restart(err error, workers int, rec *recorder.Recorder) error {
	failed, _ := errors.AsType[*multigpu.WorkerError](err)
	changing := l.job.Config != nil // after a resume with changes rank 0 writes them, once the checkpoint has loaded
	from, e, err := saving.Restart(l.run, failed, workers, changing)
	if err != nil {
		return err
	}
	c := l.run.Config
	l.o.Workers, l.o.VirtualRanks, l.o.Threads = c.Workers, c.VirtualRanks, c.Threads
	l.job.Virtual, l.job.Checkpoint = c.VirtualRanks, from.Path
	l.job.FirstGPU += from.SkipGPUs
	if changing {
		if l.job.Config, err = json.Marshal(c); err != nil {
			return err
		}
	}
	return rec.Restart(e, l.job.FirstGPU, from.Notes...)
}
