package sweep

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// A sweep's directory: sweep.json has the settings, trials.jsonl one line for each ended trial, in the order of their
// ends, and trial-0000, trial-0001, … are the runs.
const (
	studyFile  = "sweep.json"
	trialsFile = "trials.jsonl"
)

// Open reads the study in a sweep's directory, also while the sweep is running.
func Open(dir string) (*Study, error) {
	entry.Enter()
	s := &Study{}
	switch err := runfile.ReadJSON("sweep", filepath.Join(dir, studyFile), s); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("sweep: %s is not a sweep's directory: %w", dir, err)
	case err != nil:
		if _, system := errors.AsType[*os.PathError](err); system {
			err = fmt.Errorf("sweep: sweep %s is damaged: %w", dir, err)
		}
		return nil, err
	}
	s.Dir, s.Trials = dir, nil
	lines := 0
	_, err := runfile.ReadLines(filepath.Join(dir, trialsFile), 0, func(object []byte) bool {
		lines++
		var t TrialResult
		if json.Unmarshal(object, &t) != nil || t.checkRead() != nil {
			return false
		}
		t.Run = filepath.Join(dir, filepath.Base(t.Run)) // the directory may have moved
		s.Trials = append(s.Trials, t)
		return true
	})
	if s.lost = err; runfile.IgnoreDamage(err) != nil {
		return nil, fmt.Errorf("sweep: reading a sweep's trials: %w", err)
	}
	// Trial numbers ascend, with gaps for trials that were running or whose lines were lost.
	s.Trials = slices.DeleteFunc(s.Trials, func(t TrialResult) bool { return t.Number >= lines+maxGap })
	s.sort()
	s.Trials = slices.CompactFunc(s.Trials, func(a, b TrialResult) bool { return a.Number == b.Number })
	return s, nil
}

// maxGap bounds the number of trials that are missing before a recorded one: those that run at the same time.
const maxGap = 4096

func (s *Study) sort() {
	slices.SortFunc(s.Trials, func(a, b TrialResult) int { return a.Number - b.Number })
}

// lockSweep locks the sweep's directory until unlock, or until this process ends.
func (s *sweep) lockSweep(dir string) (err error) {
	s.lock, err = runfile.Lock("sweep", dir, "sweep", "wait for its end, or choose another directory (Dir, --dir)")
	return err
}

func (s *sweep) unlock() {
	s.lock.Unlock()
	s.lock = nil
}

// store chooses the sweep's directory: a new one, or that of the sweep to resume, whose trials it
// loads.
func (s *sweep) store() error {
	old, err := s.resumable()
	if err != nil {
		return err
	}
	if old != nil {
		// Read it again, now that no other process can change it.
		dir := old.Dir
		if err := s.lockSweep(dir); err != nil {
			return err
		}
		s.notes = nil
		if old, err = s.resumable(); err != nil {
			return err
		}
		if old != nil && old.Dir != dir {
			return fmt.Errorf("sweep: another process has started or ended the sweep %s at the same time; run this one again", old.Dir)
		}
	}
	if old != nil {
		s.study.Dir, s.study.ID, s.study.Created, s.past = old.Dir, old.ID, old.Created, old.Trials
		s.change(old)
		if old.lost != nil {
			s.note("%v; those trials run again", old.lost)
		}
		return s.cut()
	}
	var id [2]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	s.study.Created = time.Now().UTC()
	s.study.ID = time.Now().Format("20060102-150405") + "-sweep-" + hex.EncodeToString(id[:])
	dir := s.o.Dir
	if dir == "" {
		dir = filepath.Join(runs.Dir(), s.study.ID)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("sweep: making the sweep's directory: %w; set Dir or GNB_RUNS to a place that can be written to", err)
	}
	s.study.Dir = dir
	s.unlock()
	if err := s.lockSweep(dir); err != nil {
		return err
	}
	if runfile.Exists(filepath.Join(dir, studyFile)) { // another process started a sweep here in the meantime
		return fmt.Errorf("sweep: %s already holds a sweep; run this again to continue it, or choose another directory", dir)
	}
	return nil
}

// resumable returns the sweep to resume, or nil for a new one.
func (s *sweep) resumable() (*Study, error) {
	given := s.o.Resume
	if given == "" && s.o.Dir != "" {
		if _, err := os.Stat(filepath.Join(s.o.Dir, studyFile)); err == nil {
			given = s.o.Dir
		}
	}
	switch given {
	case gnb.Never:
		if _, err := os.Stat(filepath.Join(s.o.Dir, studyFile)); s.o.Dir != "" && err == nil {
			return nil, fmt.Errorf("sweep: %s already holds a sweep; leave Resume out to continue it, or choose another directory", s.o.Dir)
		}
		return nil, nil
	case "":
		if s.o.Dir != "" {
			return nil, nil
		}
		all, err := List(context.Background())
		if err != nil || len(all) == 0 {
			return nil, nil //nolint:nilerr // nothing to resume
		}
		old := all[len(all)-1]
		if old.State != runs.StateInterrupted {
			return nil, nil
		}
		if d := old.differencesOf(&s.study); !d.None() {
			s.notGoingOn(old, d)
			return nil, nil
		}
		if err := s.replay(old); err != nil {
			s.note("not continuing the interrupted sweep %s: its function has changed; starting a new sweep", old.ID)
			return nil, nil //nolint:nilerr // a sweep that cannot be resumed is not the one meant
		}
		return old, nil
	}
	old, err := Open(given)
	if err != nil {
		return nil, err
	}
	switch d := old.differencesOf(&s.study); {
	case len(d.Placed) > 0:
		return nil, fmt.Errorf("sweep: %s is a sweep with other settings (%s); continue it with its own settings, or start another (Dir, or Resume: gnb.Never)", given, phrase.Clauses(d.Placed))
	case len(d.Made) > 0 && !s.o.ResumeChanged:
		return nil, fmt.Errorf("sweep: %s is a sweep of other things: %s; its trials and new ones could not be compared: continue it with its own data and code, continue it anyway (ResumeChanged, --resume-changed), or start another (Dir, or Resume: gnb.Never)", given, phrase.Clauses(d.Made))
	}
	if err := s.replay(old); err != nil {
		return nil, err
	}
	if old.Dir, err = filepath.Abs(old.Dir); err != nil {
		return nil, err
	}
	return old, nil
}

// replay proposes the trials of a sweep again; the error names the first trial that differs.
func (s *sweep) replay(old *Study) error {
	again := newSearch(&s.study)
	byNumber := map[int]TrialResult{}
	for _, t := range old.Trials {
		byNumber[t.Number] = t
	}
	var done []TrialResult
	for number := 0; len(done) < len(old.Trials); number++ {
		now, err := again.propose(number, s.study.known(number, done), s.f)
		if err != nil {
			return err
		}
		was, ok := byNumber[number]
		if !ok {
			continue // it has not ended
		}
		const wayOut = "continue with the function that started the sweep, or start another (Dir, or Resume: gnb.Never)"
		if !sameParams(was, now) {
			return fmt.Errorf("sweep: trial %d of %s has %v, and the sweep's function now makes it %v; %s", number, old.Dir, was.Params, now.Params, wayOut)
		}
		others, err := differing(was.Options, now.Options)
		if err != nil {
			return err
		}
		if compact(was.Task) != compact(now.Task) {
			others = append(others, "option of the task")
		}
		if len(others) > 0 {
			return fmt.Errorf("sweep: trial %d of %s was trained with another %s than the sweep's function now gives it; %s", number, old.Dir, strings.Join(others, ", "), wayOut)
		}
		done = append(done, was)
	}
	return nil
}

// cut removes damaged and incomplete lines from trials.jsonl.
func (s *sweep) cut() error {
	var b []byte
	for _, t := range s.past {
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		b = runfile.AppendLine(b, line)
	}
	path := filepath.Join(s.study.Dir, trialsFile)
	if err := atomicfile.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("sweep: continuing a sweep: %w", err)
	}
	return nil
}

// save writes the settings and the state of the sweep.
func (s *sweep) save(state string) error {
	s.study.State = state
	head := s.study
	head.Trials = nil
	return runfile.WriteJSON("sweep", filepath.Join(s.study.Dir, studyFile), head)
}

// append records an ended trial.
func (s *sweep) append(t TrialResult) error {
	line, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("sweep: trial %d cannot be recorded: %w", t.Number, err)
	}
	f, err := atomicfile.OpenLog(filepath.Join(s.study.Dir, trialsFile), 0o644)
	if err != nil {
		return fmt.Errorf("sweep: writing a sweep's trials: %w", err)
	}
	_, err = f.Write(runfile.AppendLine(nil, line))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sweep: writing a sweep's trials: %w; make room there, and run it again", err)
	}
	return nil
}

// List returns the sweeps in [runs.Dir], the oldest first.
func List(ctx context.Context) ([]*Study, error) {
	entry.Enter()
	var out []*Study
	err := runfile.Each(ctx, "sweep", runs.Dir(), "sweeps", func(dir string) error {
		if s, err := Open(dir); err == nil {
			out = append(out, s)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b *Study) int { return a.Created.Compare(b.Created) })
	return out, err
}
