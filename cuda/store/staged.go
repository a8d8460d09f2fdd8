package store

import (
	"errors"

	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/backend"
	"github.com/graphnb/graphnb/cuda/kernels"
)

// ErrStopped is what [Stager.Prepare] returns where it was stopped while it waited.
var ErrStopped = errors.New("store: stopped")

// Stager copies the rows of one batch after the other to the device, for a loop over
// batches, where the features are Staged; elsewhere it does nothing. It has memory for
// two batches: one that the compute stream reads, and the next, which is gathered by
// the CPU, piece by piece into pinned memory, and copied by the copy stream meanwhile.
// With it goes a number for each node, which says where its row is.
type Stager struct {
	f    *Features
	sets [2]*Rows
	free chan *Rows
}

// Rows are the features of one batch, from Use to Done.
type Rows struct {
	s               *Stager // nil: nothing to do
	mem             *backend.Memory
	be              *backend.Backend // that uses them
	before          *backend.Memory  // what it read before
	buf, ids, slots *cuda.Buffer
	ready, end      *cuda.Event
}

// Stager is a new one, or one that was closed.
func (f *Features) Stager() (*Stager, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		s := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return s, nil
	}
	s := &Stager{f: f, free: make(chan *Rows, 2)}
	if f.Place != Staged {
		return s, nil
	}
	for i := range s.sets {
		r := &Rows{s: s}
		for _, e := range []**cuda.Event{&r.ready, &r.end} {
			var err error
			if *e, err = f.d.Event(false); err != nil {
				return nil, err
			}
		}
		s.sets[i] = r
		s.free <- r
	}
	f.stagers = append(f.stagers, s)
	return s, nil
}

// Close keeps the stager, with its memory, for another loop. All its Rows are done.
func (s *Stager) Close() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.idle = append(s.f.idle, s)
}

// Prepare begins to copy the rows ids, which are distinct nodes and stay as they are
// until Done. It returns when they are gathered. Two batches may be prepared at a time: a third waits for the Done of
// one, which another goroutine has to call, or until stop is closed, with ErrStopped.
func (s *Stager) Prepare(stop <-chan struct{}, ids []int32) (*Rows, error) {
	if s.f.Place != Staged || len(ids) == 0 {
		return &Rows{}, nil
	}
	var r *Rows
	select {
	case r = <-s.free:
	case <-stop:
		return nil, ErrStopped
	}
	filled := false
	defer func() { // also where the features' file faults
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
	f, st := r.s.f, r.s.f.d.Copy
	n := int64(len(ids)) * f.width()
	st.Wait(r.end) // what the memory held before is still read until then
	for _, b := range []struct {
		b     **cuda.Buffer
		bytes int64
	}{{&r.buf, n}, {&r.ids, 4 * int64(len(ids))}, {&r.slots, 4 * int64(f.Rows)}} {
		if *b.b != nil && (*b.b).Bytes >= b.bytes {
			continue
		}
		if *b.b != nil {
			b.bytes += b.bytes / 8 // batches vary
		}
		(*b.b).Free()
		*b.b = nil
		buf, err := st.Alloc(cuda.Staging, b.bytes)
		if err != nil {
			return err
		}
		buf.UsedOn(f.d.Compute)
		*b.b = buf
	}
	w := f.width()
	err := cuda.CopyInBy(st, r.buf.Ptr, n, w, func(dst []byte, at int64) {
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
	r.mem = &backend.Memory{Half: f.Half, Cache: r.buf.Ptr, Slots: r.slots.Ptr, Some: backend.SomeRows(ids)}
	return nil
}

// Use has the backend read the features of this batch from now on.
func (r *Rows) Use(be *backend.Backend) {
	if r.s == nil {
		return
	}
	r.s.f.d.Compute.Wait(r.ready)
	if now := r.s.f.shared(be); now != r.mem {
		r.be, r.before = be, now
		r.s.f.share(be, r.mem)
	}
}

// shared is what the backend reads the features from; nil where it knows none.
func (f *Features) shared(be *backend.Backend) *backend.Memory {
	x, _ := be.Kept(f.host.F32)
	if f.Half {
		x, _ = be.KeptHalf(f.host.F16)
	}
	m, _ := x.Dev.(*backend.Memory)
	return m
}

// Done ends the use of the rows by what was asked of the compute stream so far, and
// has the backend read what it read before, if that is there still: the rows of a loop
// around this one. Whatever reads these rows later fails. It is called once.
func (r *Rows) Done() {
	if r.s == nil {
		return
	}
	r.s.f.d.Compute.Record(r.end)
	r.mem.Some.End()
	if r.be != nil && r.before != nil && r.s.f.shared(r.be) == r.mem {
		r.s.f.share(r.be, r.before)
	}
	r.be, r.before = nil, nil
	r.s.free <- r
}

func (s *Stager) giveBack() {
	for _, r := range s.sets {
		for _, b := range []*cuda.Buffer{r.buf, r.ids, r.slots} {
			b.Free()
		}
	}
}
