package gnb

import (
	"context"
	"errors"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/recorder"
	"github.com/graphnb/graphnb/gnb/runs"
)

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
func Attach(ctx context.Context, r *runs.Run) (*runs.Run, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	if r == nil || r.Dir == "" {
		return nil, errors.New("gnb: Attach needs a run with a directory; get one from runs.Last or runs.Open")
	}
	return recorder.Follow(ctx, r.Dir, recorder.Options{}, false)
}
