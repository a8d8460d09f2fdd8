package saving

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// saveEvery is the default interval between checkpoints.
const saveEvery = time.Minute

// snapshotShare bounds the time for copies of boundaries to 1/snapshotShare of the run.
const snapshotShare = 50

// Saver writes a run's checkpoints.
type Saver struct {
	Options
	Kept Kept
	Best Best
	// Resumed is the checkpoint that the run resumed from.
	Resumed Resumed

	saved time.Time // the last checkpoint
	// at is where the newest checkpoint is, if there is one.
	at    Position
	wrote bool
	total int64      // steps of the run at the last checkpoint
	mu    sync.Mutex // held while a checkpoint or a snapshot is made
	last  snapshot   // copy of a recent boundary; under mu

	leaving  sync.Once
	leftWith error
}

// Options configure a Saver.
type Options struct {
	Dir   string // the run's directory, "" for a run without one
	Every int    // steps between checkpoints; 0 means one per minute, negative none
	Keep  int    // number of checkpoints to keep

	// CatchUp waits until the losses of all steps are known. Only the program's goroutine calls it.
	CatchUp func()
	// State returns the content of a checkpoint at the current boundary, except Kept and Best. The
	// tensors share memory with the parameters. Only the program's goroutine calls it.
	State func() (State, []safetensors.Tensor, error)
	// Shares, unless nil, returns the tensors that several machines hold in shares, in the memory of those
	// of an earlier copy. It is collective: the program's goroutine calls [Saver.Prepare] on rank 0 as the
	// other ranks send their shares. [Saver.SaveCopy] then takes the place of [Saver.Save].
	Shares func(memory []safetensors.Tensor) ([]safetensors.Tensor, error)
	// Settle makes the data durable that must be on disk before a checkpoint. Any goroutine may
	// call it.
	Settle func() error
	// Saved is called after each checkpoint. Any goroutine may call it.
	Saved func(path string, at Position) error
}

// snapshot is a copy of a checkpoint's content at an earlier boundary. An interrupt in the middle
// of an iteration or an evaluation saves it, so that a checkpoint is always consistent.
type snapshot struct {
	there   bool
	state   State
	tensors []safetensors.Tensor
	best    []safetensors.Tensor // of the best weights, which hold these
	at      time.Time
	cost    time.Duration
}

// Open starts saving a run, from its beginning or from the checkpoint of [Saver.Resume].
func (s *Saver) Open(o Options) { s.Options, s.saved = o, time.Now() }

// On reports whether the run writes checkpoints.
func (s *Saver) On() bool { return s.Dir != "" && s.Every >= 0 }

// Due reports whether a checkpoint is due after total steps of the run.
func (s *Saver) Due(total int64) bool {
	if s.Every > 0 {
		return total-s.total >= int64(s.Every)
	}
	return time.Since(s.saved) > saveEvery
}

// Save writes a checkpoint at the program's current boundary.
func (s *Saver) Save() error {
	s.CatchUp()
	if err := s.Settle(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ts, best, err := s.state(false)
	if err != nil {
		return err
	}
	if err := s.write(st, append(ts, best...)); err != nil {
		return err
	}
	s.saved, s.total = time.Now(), st.Position.Total
	return nil
}

// Prepare copies the content of a checkpoint at this boundary if earlier copies took a small share
// of the run's time, or if always is set.
func (s *Saver) Prepare(always bool) error {
	start := time.Now()
	if !always && !s.copyDue(start) {
		return nil
	}
	s.CatchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ts, best, err := s.state(true)
	if err != nil {
		return err
	}
	s.last.best = best
	old := s.last.tensors
	kept := min(len(old), len(ts))
	s.last.there, s.last.state, s.last.tensors = false, st, copyTensors(old[:kept], ts)
	if s.Shares != nil {
		shares, err := s.Shares(old[kept:])
		if err != nil {
			return err
		}
		s.last.tensors = append(s.last.tensors, shares...)
	}
	s.last.there = true
	s.last.at = time.Now()
	s.last.cost = s.last.at.Sub(start)
	return nil
}

func (s *Saver) copyDue(now time.Time) bool {
	return now.Sub(s.last.at) >= snapshotShare*s.last.cost
}

// Wants reports whether the boundary after total steps of the run is to be copied or saved; always is
// [Saver.Prepare]'s.
func (s *Saver) Wants(always bool, total int64) bool {
	return s.On() && (always || s.Due(total) || s.copyDue(time.Now()))
}

// SaveCopy writes a checkpoint of the program's current boundary, which was copied just before.
func (s *Saver) SaveCopy() error {
	if err := s.SavePrepared(); err != nil {
		return err
	}
	s.saved, s.total = time.Now(), s.last.state.Position.Total
	return nil
}

// SavePrepared writes the checkpoint of the last boundary that was prepared. If none was prepared
// since the run's start, it writes no checkpoint. Any goroutine may call it.
func (s *Saver) SavePrepared() error {
	if err := s.Settle(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.there {
		return nil
	}
	return s.write(s.last.state, slices.Concat(s.last.tensors, s.last.best))
}

// Leave ends an interrupted run, once: it writes a checkpoint with save, and returns the error of save,
// or why.
func (s *Saver) Leave(why error, save func() error) error {
	s.leaving.Do(func() {
		s.leftWith = why
		if s.On() {
			if err := save(); err != nil {
				s.leftWith = err
			}
		}
	})
	return s.leftWith
}

// Holds reports whether the newest checkpoint is of this boundary.
func (s *Saver) Holds(at Position) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrote && s.at == at
}

// Any reports whether there is a checkpoint of this run.
func (s *Saver) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrote
}

// state returns State with the parts that the Saver holds, and the best weights; see [Best.content] for hold.
func (s *Saver) state(hold bool) (st State, tensors, best []safetensors.Tensor, err error) {
	kept, err := s.Kept.Values()
	if err != nil {
		return State{}, nil, nil, err
	}
	st, tensors, err = s.State()
	st.Kept, st.Best = kept, maps.Clone(s.Best.values)
	st.BestMeta, best = s.Best.content(hold)
	return st, tensors, best, err
}

// write writes a checkpoint; the caller holds mu.
func (s *Saver) write(st State, ts []safetensors.Tensor) error {
	path, err := checkpoint.Save(filepath.Join(s.Dir, "checkpoints"), st.Position.Total, ts, st, s.Keep)
	if err != nil {
		return fmt.Errorf("gnb: writing a checkpoint: %w; make room, and resume the run", err)
	}
	s.at, s.wrote = st.Position, true
	return s.Saved(path, st.Position)
}
