package saving

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// Explain turns the error of a run's workers into the error that the user reads.
func Explain(run *runs.Run, err error, observe func(runs.Event)) error {
	stop, ok := errors.AsType[*multigpu.Interrupted](err)
	if !ok {
		return err
	}
	if stop.Err != nil && !errors.Is(stop.Err, runs.ErrInterrupted) { // a worker that was asked to end reports why
		observe(runs.Event{Kind: runs.KindOutput, Text: fmt.Sprintf("while stopping: %v", stop.Err)})
	}
	why := ""
	if stop.Why != "" {
		why = ", because " + stop.Why
	}
	if run.Dir == "" {
		return fmt.Errorf("gnb: %w%s", runs.ErrInterrupted, why)
	}
	path, step, _, err := checkpoint.Latest(filepath.Join(run.Dir, "checkpoints"))
	if err != nil {
		return fmt.Errorf("gnb: run %s was %w before its first checkpoint%s", run.Config.ID, runs.ErrInterrupted, why)
	}
	return fmt.Errorf("gnb: run %s was %w after step %d%s; its checkpoint is %s, and running it again resumes from there", run.Config.ID, runs.ErrInterrupted, step, why, path)
}
