package store

import (
	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/kernels"
)

// staging is the rows of two batches: one that the compute stream reads, and the
// next, which is copied meanwhile.
type staging struct {
	sets [2]*Rows
	free chan *Rows
}

// Rows are the features of one batch, until Done. Where all features lie where
// kernels read them, there is nothing to it.
type Rows struct {
	f          *Features // nil: nothing to do
	pin        *cuda.Pinned
	buf, ids   *cuda.Buffer
	slots      *cuda.Buffer
	ready, end *cuda.Event
}

func newStaging(f *Features) (*staging, error) {
	s := &staging{free: make(chan *Rows, 2)}
	for i := range s.sets {
		r := &Rows{f: f}
		for _, e := range []**cuda.Event{&r.ready, &r.end} {
			var err error
			if *e, err = f.d.Event(false); err != nil {
				return nil, err
			}
		}
		s.sets[i] = r
		s.free <- r
	}
	return s, nil
}

// Prepare copies the rows ids to the device, on its copy stream, where the place is
// Staged; elsewhere it does nothing. The ids are distinct nodes. Two batches may be
// prepared at a time: a third waits for the Done of one, which another goroutine has
// to call.
func (f *Features) Prepare(ids []int32) (*Rows, error) {
	if f.stage == nil || len(ids) == 0 {
		return &Rows{}, nil
	}
	r := <-f.stage.free
	err := r.end.Sync() // what it held before is still read until then
	if err == nil {
		err = r.fill(ids)
	}
	if err != nil {
		f.stage.free <- r
		return nil, err
	}
	return r, nil
}

func (r *Rows) fill(ids []int32) error {
	f, st := r.f, r.f.d.Copy
	n := int64(len(ids)) * f.width()
	if r.pin == nil || int64(len(r.pin.Bytes)) < n {
		if r.pin != nil {
			if err := r.pin.Free(); err != nil {
				return err
			}
			r.pin = nil
		}
		var err error
		if r.pin, err = f.d.Pin(n + n/8); err != nil {
			return err
		}
	}
	for _, b := range []struct {
		b     **cuda.Buffer
		bytes int64
	}{{&r.buf, n}, {&r.ids, 4 * int64(len(ids))}, {&r.slots, 4 * int64(f.Rows)}} {
		if *b.b != nil && (*b.b).Bytes >= b.bytes {
			continue
		}
		(*b.b).Free()
		*b.b = nil
		buf, err := st.Alloc(cuda.Staging, b.bytes+b.bytes/8)
		if err != nil {
			return err
		}
		buf.UsedOn(f.d.Compute)
		*b.b = buf
	}
	f.gather(r.pin.Bytes[:n], ids)
	st.CopyFromPinned(r.buf.Ptr, r.pin, 0, n)
	if err := cuda.CopyIn(st, r.ids.Ptr, ids); err != nil {
		return err
	}
	shape := kernels.Items(len(ids))
	st.Launch("slots_i32", cuda.Dim{X: shape.Grid}, cuda.Dim{X: shape.X}, 0, r.slots, r.ids, len(ids))
	st.Record(r.ready)
	return nil
}

// Use makes the rows those that the backend reads from now on, for its batch only.
func (r *Rows) Use() {
	if r.f == nil {
		return
	}
	r.f.d.Compute.Wait(r.ready)
	r.f.mem.Cache, r.f.mem.Slots = r.buf.Ptr, r.slots.Ptr
	// Every row that is read has a slot; the table itself is not there.
	r.f.mem.Ptr = r.buf.Ptr
}

// Done ends the use of the rows by what was asked of the compute stream so far. It
// is called once.
func (r *Rows) Done() {
	if r.f == nil {
		return
	}
	r.f.d.Compute.Record(r.end)
	r.f.stage.free <- r
}

func (s *staging) close() error {
	var first error
	for _, r := range s.sets {
		for _, b := range []*cuda.Buffer{r.buf, r.ids, r.slots} {
			b.Free()
		}
		if r.pin != nil {
			if err := r.pin.Free(); err != nil && first == nil {
				first = err
			}
		}
		r.pin = nil
	}
	return first
}
