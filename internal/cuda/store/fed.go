package store

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
)

// Fed is the rows of features that stay on a device for a loop whose batches are gathered by the host. A batch brings its
// other rows, packed. The kernels that read rows of a table read both in place: the rows that stay are the table, and those
// of the batch are its cache, behind them in the numbering, so that no row is moved on the device.
type Fed struct {
	d       *cuda.Device
	rows    *cuda.Buffer
	n, cols int
	half    bool

	loops loops[Feeder]
}

// NewFed returns a Fed without rows.
func NewFed(d *cuda.Device) *Fed { return &Fed{d: d} }

// slotBytes is the size of the entries of a row that stays in the tables of two batches.
const slotBytes = 2 * 4

// Room frees the rows that were there, of which no batch may be in use, and makes room for rows of cols columns, of float16 (half) or float32: for as many as
// fit into the memory that is free for data, and returns how many.
func (f *Fed) Room(rows, cols int, half bool) (int, error) {
	f.rows.Free()
	f.rows, f.n, f.cols, f.half = nil, 0, cols, half
	for _, s := range f.loops.all {
		for _, r := range s.sets {
			r.numbered = 0
		}
	}
	n := int(min(int64(rows), max(0, free(f.d))/(f.width()+slotBytes)))
	if n <= 0 {
		return 0, nil
	}
	b, err := f.d.Alloc(cuda.Features, int64(n)*f.width())
	switch {
	case errors.Is(err, cuda.OutOfMemory):
		return 0, nil // another process has taken the free memory
	case err != nil:
		return 0, err
	}
	f.rows, f.n = b, n
	return n, nil
}

// width is the bytes of a row.
func (f *Fed) width() int64 {
	if f.half {
		return 2 * int64(f.cols)
	}
	return 4 * int64(f.cols)
}

// Put copies rows there, from number first on.
func (f *Fed) Put(first int, rows []byte) error {
	if at := int64(first) * f.width(); first < 0 || at+int64(len(rows)) > int64(f.n)*f.width() {
		return fmt.Errorf("store: %d bytes from row %d on, and there is room for %d rows of %d bytes", len(rows), first, f.n, f.width())
	}
	return cuda.CopyIn(f.d.Compute, f.rows.Ptr+cuda.Ptr(int64(first)*f.width()), rows)
}

// Close frees the rows and the memory of all feeders.
func (f *Fed) Close() {
	f.rows.Free()
	f.rows, f.n = nil, 0
	f.loops.close(func(s *Feeder) { s.pair.close((*FedRows).close) })
}

// Feeder copies the rows of the batches of one loop to the device that do not stay there. It has memory for two batches, like a
// [Stager].
type Feeder struct {
	f *Fed
	pair[FedRows]
}

// FedRows are the features of one batch, until Done.
type FedRows struct {
	staging  // of the rows that do not stay
	s        *Feeder
	table    ops.Buffer // rows that stay and those of the batch
	places   []int32
	numbered int // rows of a batch that slots has numbers for
}

// Feeder returns a new Feeder, or one that was closed.
func (f *Fed) Feeder() (*Feeder, error) {
	return f.loops.begin(func() (s *Feeder, err error) {
		s = &Feeder{f: f}
		s.pair, err = newPair(func() (*FedRows, error) {
			r := &FedRows{s: s}
			return r, r.init(f.d)
		})
		return s, err
	})
}

// Close keeps the feeder and its memory for another loop. All its FedRows must be done.
func (s *Feeder) Close() { s.f.loops.end(s) }

// Prepare starts to copy a batch's rows: places says where each of them is, the number of a row that stays or that number
// of rows plus a row of rest. Places must not change until Done. Two batches may be prepared at a time. A third call waits
// until another goroutine calls Done for one of them, or returns [ErrStopped] when stop is closed.
func (s *Feeder) Prepare(stop <-chan struct{}, places []int32, rest tensor.Table) (*FedRows, error) {
	r, err := s.take(stop)
	if err != nil {
		return nil, err
	}
	if err := r.fill(places, rest); err != nil {
		s.free <- r
		return nil, err
	}
	return r, nil
}

func (r *FedRows) fill(places []int32, rest tensor.Table) error {
	f, st := r.s.f, r.d.Copy
	m := 0
	if f.cols > 0 {
		m = max(len(rest.F32), len(rest.F16)) / f.cols
	}
	if half := rest.F16 != nil; m > 0 && half != f.half {
		return errors.New("store: rows of a batch in another format than those that stay on the device")
	}
	numbers := r.slots
	if err := r.room(int64(m)*f.width(), 4*int64(len(places)), 4*int64(f.n+m)); err != nil {
		return err
	}
	if r.slots != numbers {
		r.numbered = 0
	}
	err := error(nil)
	if r.numbered < m {
		st.Fill32(r.slots.Ptr, ^uint32(0), int64(f.n)) // these rows are in the table
		at := make([]int32, int(r.slots.Bytes/4)-f.n)
		for i := range at {
			at[i] = int32(i)
		}
		err = cuda.CopyIn(st, r.slots.Ptr+cuda.Ptr(4*f.n), at)
		r.numbered = len(at)
	}
	if err == nil && f.half {
		err = cuda.CopyIn(st, r.rows.Ptr, rest.F16)
	} else if err == nil {
		err = cuda.CopyIn(st, r.rows.Ptr, rest.F32)
	}
	if err == nil {
		err = cuda.CopyIn(st, r.ids.Ptr, places)
	}
	if err != nil {
		return err
	}
	st.Record(r.ready)
	mem := &backend.Memory{Half: f.half, IDs: places, IDsAt: r.ids.Ptr}
	if f.rows != nil {
		mem.Ptr = f.rows.Ptr
	}
	if m > 0 { // else all rows are in the table
		mem.Cache, mem.Slots = r.rows.Ptr, r.slots.Ptr
	}
	r.places, r.table = places, ops.Buffer{Dev: mem, N: (f.n + m) * f.cols}
	return nil
}

// Input is the batch's features as the input of a pass of the device's backend, in the space sp.
func (r *FedRows) Input(f *tensor.Fwd, sp *ops.Space) *tensor.Tensor {
	r.d.Compute.Wait(r.ready)
	return f.BufferRows(r.table, r.s.f.cols, r.places, sp)
}

// Done ends the use of the rows after the work submitted to the compute stream so far. Reading them later is an error. Call
// it once.
func (r *FedRows) Done() {
	r.d.Compute.Record(r.end)
	r.table.Dev.(*backend.Memory).Ended = true
	r.table, r.places = ops.Buffer{}, nil
	r.s.free <- r
}
