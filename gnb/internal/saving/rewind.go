package saving

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// Start is where a run continues: its newest checkpoint, or its beginning if Path is "".
type Start struct {
	Path  string
	Step  int64
	Notes []string // what the user should know, such as a damaged checkpoint that was skipped
	// SkipGPUs is the number of GPUs that rank 0 moves on, so that the fewer workers of a restart
	// do not take the GPU of the rank that failed.
	SkipGPUs int

	at [3]int
}

// FindStart finds the newest checkpoint of a run, and checks the files of best weights that belong
// to it. It changes nothing.
func FindStart(r *runs.Run) (s Start, err error) {
	path, step, passed, err := Newest(r)
	for _, d := range passed {
		s.Notes = append(s.Notes, fmt.Sprintf("passing over a checkpoint: %v", d))
	}
	switch {
	case errors.Is(err, checkpoint.ErrNone) && slices.ContainsFunc(passed, func(err error) bool { return errors.Is(err, ErrForeign) }):
		return s, fmt.Errorf("gnb: %s cannot be resumed: it has no checkpoint of its own (%w); put those back, or begin another run (leave Resume out)", r.Dir, passed[0])
	case errors.Is(err, checkpoint.ErrNone):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("gnb: %s cannot be resumed: %w", r.Dir, err)
	}
	var st State
	ts, err := checkpoint.Load(path, &st)
	if err != nil {
		return s, err
	}
	s.Path, s.Step, s.at = path, step, st.Position.Place()
	notes, err := st.CheckBestFiles(ts, r.Dir)
	s.Notes = append(s.Notes, notes...)
	return s, err
}

// Rewind makes the files of a run, of which no worker runs, those of its start: it removes the
// temporary files of killed workers, the metrics that the run will report again and, at the run's beginning, the
// best weights, which are of steps that are abandoned. It gives the
// events in then the position of the start, and appends them to the metrics.
func (s *Start) Rewind(r *runs.Run, then ...*runs.Event) error {
	atomicfile.Sweep(r.Dir)
	atomicfile.Sweep(filepath.Join(r.Dir, "checkpoints"))
	if s.Path == "" {
		for _, path := range weightsIn(r.Dir, allBest) {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("gnb: removing the best weights of a run that begins again: %w", err)
			}
		}
	}
	for _, e := range then {
		e.At, e.Total, e.Epoch = s.at, s.Step, s.at[0]
	}
	lost, err := truncateMetrics(r, s.at, then...)
	if lost != nil {
		s.Notes = append(s.Notes, lost.Error())
	}
	return err
}

// Restart prepares a run whose worker failed for its next start with the given number of workers,
// from its newest checkpoint, and returns the event that tells so. The run keeps its workers ×
// virtual ranks, and with them its bits, and its threads in all. Its configuration is written
// unless deferred is set: then rank 0 writes it.
func Restart(r *runs.Run, failed *multigpu.WorkerError, workers int, deferred bool) (from Start, e runs.Event, err error) {
	if r.Dir != "" {
		if from, err = FindStart(r); err != nil {
			return from, e, err
		}
	}
	now, c := time.Now(), &r.Config
	if workers < c.Workers && failed.Rank < workers {
		from.SkipGPUs = c.Workers - workers
	}
	record := runs.Restart{
		When: now.UTC().Truncate(time.Second), Rank: failed.Rank, Epoch: failed.Epoch, Step: failed.Step, Stage: failed.Stage, Reason: failed.Reason,
		From: from.Step, Workers: workers,
	}
	c.VirtualRanks, c.Threads = c.Workers*c.VirtualRanks/workers, c.Workers*c.Threads/workers
	c.Workers, c.Restarts = workers, append(c.Restarts, record)
	e = runs.Event{Kind: runs.KindRestart, Restart: &record, Text: record.String(), Time: float64(now.UnixMilli()) / 1e3}
	if r.Dir == "" {
		return from, e, nil
	}
	if err = from.Rewind(r, &e); err == nil && !deferred {
		err = runfile.WriteJSON("gnb", filepath.Join(r.Dir, runfile.Config), c)
	}
	return from, e, err
}

// Interrupted looks for the run that a new run with configuration c would repeat, among the given
// earlier ones, the last one last. It returns the last run with this configuration if that was
// interrupted and has a checkpoint, else nil. With again, which tells that a launcher may have started
// the program again, a run that failed or was killed counts too, and one without a checkpoint.
// Interrupted ignores later runs of other configurations, because Jupyter runs the waiting cells after
// an interrupt. If the program's last run has another configuration, differs describes the differences;
// interrupted is that run if it was interrupted and could be resumed.
func Interrupted(earlier []*runs.Run, c runs.Config, again bool) (same *runs.Run, differs string, interrupted *runs.Run) {
	goesOn := func(r *runs.Run, again bool) bool {
		if s := r.Result.State; s != runs.StateInterrupted && (!again || s != runs.StateFailed && s != runs.StateKilled) {
			return false
		}
		_, _, _, err := Newest(r)
		return err == nil || again && errors.Is(err, checkpoint.ErrNone)
	}
	var last *runs.Run // this program's last run
	for _, r := range slices.Backward(earlier) {
		if r.Config.Program != c.Program {
			continue
		}
		if last == nil {
			last = r
		}
		if !Compare(r.Config, c).None() {
			continue
		}
		if goesOn(r, again) {
			return r, "", nil
		}
		break
	}
	if last == nil || Compare(last.Config, c).None() {
		return nil, "", nil
	}
	d := Compare(last.Config, c)
	if differs = phrase.Clauses(d.All()); differs == "" {
		differs = "it is of a version that did not record its data and code"
	}
	if goesOn(last, false) {
		interrupted = last
	}
	return nil, differs, interrupted
}
