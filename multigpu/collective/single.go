package collective

import (
	"fmt"
	"sync/atomic"
)

// NewSingle returns the Comm of a run of one rank, in ordinary memory. Sums over
// virtual slots have the bits that any number of ranks would give.
func NewSingle() Comm { return &single{aborted: new(atomic.Pointer[string])} }

var _ Comm = (*single)(nil)

type single struct {
	closed  bool
	aborted *atomic.Pointer[string] // the reason; the split Comm has the same
	isSplit bool
	split   *single
}

func (c *single) check(s Site) error {
	if c.closed {
		return fmt.Errorf("collective: %v: %w", s, ErrClosed)
	}
	if reason := c.aborted.Load(); reason != nil {
		return &abortError{site: s, reason: *reason}
	}
	return nil
}

func (c *single) Rank() int             { return 0 }
func (c *single) Size() int             { return 1 }
func (c *single) Barrier(s Site) error  { return c.check(s) }
func (c *single) Abort(reason string)   { c.aborted.CompareAndSwap(nil, &reason) }
func (c *single) Waiting() (Site, bool) { return Site{}, false }

func (c *single) Aborted() (string, bool) { return text(c.aborted) }

// text is the text that a pointer may hold.
func text(p *atomic.Pointer[string]) (string, bool) {
	if s := p.Load(); s != nil {
		return *s, true
	}
	return "", false
}

func (c *single) Close() error {
	c.closed = true
	if c.split != nil {
		c.split.closed = true
	}
	return nil
}

func (c *single) Split(s Site) (Comm, error) {
	if err := checkSplit(s, c.isSplit, c.split != nil); err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	c.split = &single{aborted: c.aborted, isSplit: true}
	return c.split, nil
}

func (c *single) AllGather(s Site, mine []byte) ([][]byte, error) {
	if err := c.check(s); err != nil {
		return nil, err
	}
	return [][]byte{clone(mine)}, nil
}

func (c *single) AllToAll(s Site, send [][]byte) ([][]byte, error) {
	if err := checkSend(s, send, 1); err != nil {
		return nil, err
	}
	return c.AllGather(s, send[0])
}

func (c *single) SumInt64(s Site, _ []int64) error { return c.check(s) }

func (c *single) Broadcast(s Site, root int, _ []float32) error {
	if err := c.check(s); err != nil {
		return err
	}
	return checkRoot(s, root, 1)
}

func (c *single) NewReducer(s Site, n, virtual int) (Reducer, error) {
	if err := c.check(s); err != nil {
		return nil, err
	}
	if err := checkReducer(s, n, virtual); err != nil {
		return nil, err
	}
	r := &singleReducer{comm: c, joins: joinSlots(virtual), sum: make([]float32, n)}
	for range virtual {
		r.slots = append(r.slots, make([]float32, n))
	}
	return r, nil
}

func (c *single) NewMatrix(s Site, rows, cols int) (Matrix, error) {
	if err := c.check(s); err != nil {
		return nil, err
	}
	if err := checkSizes("a matrix", s, rows, cols); err != nil {
		return nil, err
	}
	return &singleMatrix{comm: c, rows: rows, cols: cols, data: make([]float32, rows*cols)}, nil
}

var _ Reducer = (*singleReducer)(nil)

type singleReducer struct {
	comm  *single
	joins *joins
	slots [][]float32
	sum   []float32
}

func (r *singleReducer) Slot(v int) []float32 { return r.slots[v] }
func (r *singleReducer) Release()             { r.slots, r.sum = nil, nil }

func (r *singleReducer) Reduce(s Site) ([]float32, error) {
	if err := r.comm.check(s); err != nil {
		return nil, err
	}
	if r.slots == nil {
		return nil, releasedError("a sum", s)
	}
	r.joins.sum(r.sum, r.slots, 0, len(r.sum))
	return r.sum, nil
}

var _ Matrix = (*singleMatrix)(nil)

type singleMatrix struct {
	comm       *single
	rows, cols int
	data       []float32
}

func (m *singleMatrix) Rows() int       { return m.rows }
func (m *singleMatrix) Cols() int       { return m.cols }
func (m *singleMatrix) Data() []float32 { return m.data }
func (m *singleMatrix) Release()        { m.data = nil }

func (m *singleMatrix) Publish(s Site, lo, hi int) error {
	if err := checkRows(s, lo, hi, m.rows); err != nil {
		return err
	}
	return m.comm.check(s)
}

// clone returns a copy that is never nil, so that an empty message differs from a missing one.
func clone(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }
