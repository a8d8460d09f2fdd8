package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// identify adds the identity of the data and code to the run's configuration.
func (l *launched) identify(ctx context.Context) error {
	c := &l.run.Config
	var err error
	if c.Identity, err = identify(ctx, l.o.Data, codeOf(c.Program, c.Args)); err != nil {
		return err
	}
	c.Identity.Run = saving.Digest(*c)
	l.fromOtherData()
	return nil
}

// identify returns the identity of a run: its data, code and settings.
func identify(ctx context.Context, ds *dataset.Dataset, code runs.CodeIdentity) (*runs.Identity, error) {
	id := &runs.Identity{Code: code, Library: entry.Library(Version)}
	if ds != nil {
		d, err := ds.Digests(ctx, nil)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("gnb: %w before it began", runs.ErrInterrupted)
		}
		if err != nil {
			return nil, fmt.Errorf("gnb: telling whether the data is that of an earlier run: %w", err)
		}
		id.Data = (*runs.DataIdentity)(&d)
	}
	return id, nil
}

// directory makes the run's directory, or takes the one of the run to resume.
func (l *launched) directory() error {
	o, c := &l.o, l.run.Config
	dir, err := l.resumable(c)
	if err != nil {
		return err
	}
	if dir != "" {
		return l.resume(dir)
	}
	dir = o.RunDir
	if dir == "" {
		dir = filepath.Join(runs.Dir(), c.ID)
	} else if _, err := os.Stat(filepath.Join(dir, runfile.Config)); err == nil {
		if l.differs != "" {
			return fmt.Errorf("gnb: %s already holds a run, of other things: %s; resume it all the same (Resume: %q with ResumeChanged), or choose another directory", dir, l.differs, dir)
		}
		return fmt.Errorf("gnb: %s already holds a run; resume it (Resume: %q) or choose another directory", dir, dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("gnb: making the run's directory: %w; set RunDir or GNB_RUNS to a place that can be written to", err)
	}
	if err := l.lockRun(dir); err != nil {
		return err
	}
	return l.write(dir, "")
}

// write writes the run's configuration into its directory, and tells the workers the directory and
// their first checkpoint.
func (l *launched) write(dir, path string) error {
	l.tell(dir, path)
	return runfile.WriteJSON("gnb", filepath.Join(dir, runfile.Config), l.run.Config)
}

// tell tells the workers the run's directory and the checkpoint to start from.
func (l *launched) tell(dir, path string) {
	c := l.run.Config
	l.run.Dir, l.job.RunDir, l.job.Checkpoint = dir, dir, path
	l.job.RunID, l.job.Identity = c.ID, c.Identity.Run
}

// resumable returns the directory of the run to resume, "" for a new run.
func (l *launched) resumable(c runs.Config) (string, error) {
	switch l.o.Resume {
	case Never:
		return "", nil
	case "":
		return l.interrupted(c), nil
	}
	r, err := saving.OpenToResume(l.o.Resume)
	if err != nil {
		return "", err
	}
	if !l.isDir(r.Dir) {
		return "", fmt.Errorf("gnb: a resumed run goes on in its own directory, which is %s, but RunDir (--run) is %s; leave RunDir out", r.Dir, l.o.RunDir)
	}
	if r.Config.Program != c.Program {
		return "", fmt.Errorf("gnb: %s is a run of program %q, not of %q; resume it with its own program", r.Dir, r.Config.Program, c.Program)
	}
	if d := saving.Compare(r.Config, c); len(d.Made) > 0 && !l.o.ResumeChanged {
		return "", fmt.Errorf("gnb: run %s cannot be resumed unchanged: %s; to resume it all the same set ResumeChanged (--resume-changed), or start another run (leave Resume out)", r.Dir, phrase.Clauses(d.Made))
	}
	return l.o.Resume, nil
}

// isDir reports whether a directory is the one that the options name, if they name one.
func (l *launched) isDir(dir string) bool {
	if l.o.RunDir == "" {
		return true
	}
	named, err := os.Stat(l.o.RunDir)
	if err != nil {
		return false
	}
	of, err := os.Stat(dir)
	return err == nil && os.SameFile(named, of)
}

// interrupted returns the directory of the last run with configuration c, if that run was
// interrupted and has a checkpoint, else "". Under a launcher, which starts a program again after a
// failure too, it also returns that of a run that failed or was killed. It skips runs that cannot be read. If the program's
// last run was interrupted and has another configuration, interrupted records the differences.
func (l *launched) interrupted(c runs.Config) string {
	var earlier []*runs.Run
	if l.o.RunDir == "" {
		earlier, _ = runs.List(context.Background())
	} else if r, err := runs.Open(l.o.RunDir); err == nil {
		earlier = append(earlier, r)
	}
	same, differs, other := saving.Interrupted(earlier, c, l.ranks > 0)
	if same != nil {
		return same.Dir
	}
	if l.differs = differs; other != nil && l.o.RunDir == "" {
		l.note("not resuming the interrupted run %s: %s; a new run begins", other.Config.ID, differs)
	}
	return ""
}

// resume continues the run in dir from its newest checkpoint; it removes metrics recorded after
// that checkpoint.
func (l *launched) resume(dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	old, err := saving.OpenToResume(dir)
	if err != nil {
		return err
	}
	if err := l.lockRun(dir); err != nil {
		return err
	}
	from, err := saving.FindStart(old)
	for _, note := range from.Notes {
		l.note("%s", note)
	}
	if err != nil {
		return err
	}
	if from.Path == "" {
		if ended(old) {
			return fmt.Errorf("gnb: run %s is %w, so it cannot go on, and its weights are not overwritten; start another run with them (From: %q, --from %s)", old.Dir, ErrNoCheckpoint, old.Dir, old.Dir)
		}
		l.note("run %s has no checkpoint: it starts anew", old.Config.ID)
	} else {
		l.note("resuming run %s from its checkpoint after step %d", old.Config.ID, from.Step)
	}
	told := len(from.Notes)
	notes, changed := saving.Continue(&l.run.Config, old.Config, from.Step)
	l.notes, l.job.Changed = append(l.notes, notes...), changed
	if len(l.run.Config.Changes) > len(old.Config.Changes) {
		l.former = keepFormer(dir)
		defer func() {
			if err != nil {
				err = errors.Join(err, l.former.putBack())
			}
		}()
	}
	if err := from.Rewind(old); err != nil {
		return err
	}
	for _, note := range from.Notes[told:] {
		l.note("%s", note)
	}
	if err := os.Remove(filepath.Join(dir, runfile.Result)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("gnb: resuming: %w", err)
	}
	if len(l.run.Config.Changes) == len(old.Config.Changes) {
		return l.write(dir, from.Path)
	}
	// Rank 0 records the change once the checkpoint has loaded.
	l.tell(dir, from.Path)
	l.job.Config, err = json.Marshal(l.run.Config)
	return err
}

// ended reports whether a run has its final weights, even if its result cannot be read.
func ended(r *runs.Run) bool {
	return r.Result.State == runs.StateDone || runfile.Exists(r.Weights())
}

// lockRun marks the run's directory as in use.
func (l *launched) lockRun(dir string) (err error) {
	l.lock, err = runfile.Lock("gnb", dir, "run", "watch it with gnb.Attach, or wait for its end")
	return err
}
