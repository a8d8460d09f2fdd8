package store

import (
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// Stager copies the feature rows of each batch to the device, in a loop over batches with Staged
// features; for other places it does nothing. It has memory for two batches. While the compute
// stream reads one, the CPU gathers the next, piece by piece into pinned memory, and the copy
// stream copies it, together with the position of each node's row.
type Stager struct {
	f *Features
	pair[Rows]
}

// Rows are the features of one batch, from Use to Done.
type Rows struct {
	staging
	s      *Stager // nil: nothing to do
	mem    *backend.Memory
	be     *backend.Backend // that uses them
	before *backend.Memory  // what it read before
}

// Stager returns a new Stager, or one that was closed.
func (f *Features) Stager() (*Stager, error) {
	return f.loops.begin(func() (s *Stager, err error) {
		s = &Stager{f: f}
		if f.Place == Staged {
			s.pair, err = newPair(func() (*Rows, error) {
				r := &Rows{s: s}
				return r, r.init(f.d)
			})
		}
		return s, err
	})
}

// Close keeps the stager and its memory for another loop. All its Rows must be done.
func (s *Stager) Close() { s.f.loops.end(s) }

// Prepare starts to copy the rows ids, which are distinct nodes and must not change until Done. It
// returns when the rows are gathered. Two batches may be prepared at a time. A third call waits
// until another goroutine calls Done for one of them, or returns ErrStopped when stop is closed.
func (s *Stager) Prepare(stop <-chan struct{}, ids []int32) (*Rows, error) {
	if s.f.Place != Staged || len(ids) == 0 {
		return &Rows{}, nil
	}
	r, err := s.take(stop)
	if err != nil {
		return nil, err
	}
	filled := false
	defer func() { // also if reading the features' file faults
		if !filled {
			s.free <- r
		}
	}()
	if err := r.fill(ids); err != nil {
		return nil, err
	}
	filled = true
	return r, nil
}

func (r *Rows) fill(ids []int32) error {
	f, st, w := r.s.f, r.d.Copy, r.s.f.width()
	n := int64(len(ids)) * w
	if err := r.room(n, 4*int64(len(ids)), 4*int64(f.Rows)); err != nil {
		return err
	}
	err := cuda.CopyInBy(st, r.rows.Ptr, n, w, func(dst []byte, at int64) {
		f.gather(dst, ids[at/w:(at+int64(len(dst)))/w])
	})
	if err == nil {
		err = cuda.CopyIn(st, r.ids.Ptr, ids)
	}
	if err != nil {
		return err
	}
	shape := kernels.Items(len(ids))
	st.Launch("slots_i32", cuda.Dim{X: shape.Grid}, cuda.Dim{X: shape.X}, 0, r.slots, r.ids, len(ids))
	st.Record(r.ready)
	r.mem = &backend.Memory{Half: f.Half, Cache: r.rows.Ptr, Slots: r.slots.Ptr, Some: backend.SomeRows(ids)}
	return nil
}

// Use makes the backend read the features of this batch from now on.
func (r *Rows) Use(be *backend.Backend) {
	if r.s == nil {
		return
	}
	r.d.Compute.Wait(r.ready)
	if now := r.s.f.shared(be); now != r.mem {
		r.be, r.before = be, now
		r.s.f.share(be, r.mem)
	}
}

// shared returns what the backend reads the features from, or nil if there is nothing.
func (f *Features) shared(be *backend.Backend) *backend.Memory {
	x, _ := be.Kept(f.host.F32)
	if f.Half {
		x, _ = be.KeptHalf(f.host.F16)
	}
	m, _ := x.Dev.(*backend.Memory)
	return m
}

// Done ends the use of the rows after the work submitted to the compute stream so far. The backend
// then reads the features that it read before, such as the rows of an enclosing loop, if they still
// exist. Reading these rows later is an error. Call it once.
func (r *Rows) Done() {
	if r.s == nil {
		return
	}
	r.d.Compute.Record(r.end)
	r.mem.Some.End()
	if r.be != nil && r.before != nil && r.s.f.shared(r.be) == r.mem {
		r.s.f.share(r.be, r.before)
	}
	r.be, r.before = nil, nil
	r.s.free <- r
}
