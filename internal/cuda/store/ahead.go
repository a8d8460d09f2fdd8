package store

import (
	"errors"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
)

// Gatherer gathers the feature rows of each batch from the host's memory, one batch ahead, in a loop over batches that
// were sampled on the device, with [Pinned] or [Cached] features. It has memory for two batches. While the compute stream
// reads one, the copy stream gathers the next, with few blocks: the bus is slow, and the other multiprocessors are left to
// the compute stream.
//
// That memory is a convenience, so the computation comes first: the backend gathers the rows of the first two batches, and
// has then taken what a pass needs. Later ones are gathered ahead if the device has room for twice as much.
type Gatherer struct {
	f *Features
	pair[Gathered]
	passed atomic.Int64 // batches that have ended
}

// first is the number of batches after which a device has the memory of a pass.
const first = 2

// Gathered are the rows of one batch's sources, from Use to Done.
type Gathered struct {
	staging
	g     *Gatherer
	block *graphops.Block // nil: the rows are not gathered
	on    bool            // the compute stream has waited for the rows
}

// Gatherer returns a new Gatherer, or one that was closed.
func (f *Features) Gatherer() (*Gatherer, error) {
	return f.gatherers.begin(func() (g *Gatherer, err error) {
		g = &Gatherer{f: f}
		g.pair, err = newPair(func() (*Gathered, error) {
			r := &Gathered{g: g}
			return r, r.init(f.d)
		})
		return g, err
	})
}

// Close keeps the gatherer and its memory for another loop. All its Gathered must be done.
func (g *Gatherer) Close() { g.f.gatherers.end(g) }

// Prepare starts to gather the rows of b's sources, unless edges should read them directly ([backend.Backend.GatherFirst]), or
// there is no room. It returns at once, but two batches may be prepared at a time: a third call waits until another goroutine
// calls Done for one of them, or returns ErrStopped when stop is closed.
func (g *Gatherer) Prepare(stop <-chan struct{}, be *backend.Backend, b *graphops.Block) (*Gathered, error) {
	if !be.GatherFirst(b, g.f.mem) || g.passed.Load() < first {
		return &Gathered{g: g}, nil
	}
	r, err := g.take(stop)
	if err != nil {
		return nil, err
	}
	err = cuda.OutOfMemory
	if bytes := 4 * int64(b.NumSrc) * int64(g.f.Cols); r.fits(bytes) {
		err = r.room(bytes, 0, 0)
	}
	if err != nil {
		g.free <- r
		if errors.Is(err, cuda.OutOfMemory) {
			return &Gathered{g: g}, nil
		}
		return nil, err
	}
	be.GatherOn(r.d.Copy, r.rows.Ptr, b, g.f.mem, g.f.Cols)
	r.d.Copy.Record(r.ready)
	r.block, r.on = b, false
	return r, nil
}

// fits reports whether there is memory for the bytes, or room for twice as many.
func (r *Gathered) fits(bytes int64) bool {
	if r.rows != nil && r.rows.Bytes >= bytes {
		return true
	}
	m := r.d.Memory()
	return m.Limit-m.Reserved >= 2*bytes
}

// Use makes the backend read these rows wherever it reads the features of the batch's sources.
func (r *Gathered) Use() {
	if r.block == nil || r.on {
		return
	}
	r.wait()
	a := cuda.ArraysOf(r.block)
	a.Rows, a.RowsOf = r.rows.Ptr, &r.g.f.mem
}

func (r *Gathered) wait() {
	r.d.Compute.Wait(r.ready)
	r.on = true
}

// Done ends the use of the rows after the work submitted to the compute stream so far. Call it once, before the batch is
// released.
func (r *Gathered) Done() {
	r.g.passed.Add(1)
	if r.block == nil {
		return
	}
	if !r.on {
		r.wait() // the memory of the batch's ids is reused once the compute stream has passed its release
	}
	if a := cuda.ArraysOf(r.block); a != nil && a.Rows == r.rows.Ptr {
		a.Rows, a.RowsOf = 0, nil
	}
	r.d.Compute.Record(r.end)
	r.block = nil
	r.g.free <- r
}
