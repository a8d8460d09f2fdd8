package collective

import "fmt"

// NewSingle returns the Comm of a run of one rank, in ordinary memory. Sums over
// virtual slots have the bits that any number of ranks would give.
func NewSingle() Comm { return &single{} }

type single struct{ closed bool }

func (c *single) check(s Site) error {
	if c.closed {
		return fmt.Errorf("collective: %v: %w", s, ErrClosed)
	}
	return nil
}

func (c *single) Rank() int            { return 0 }
func (c *single) Size() int            { return 1 }
func (c *single) Barrier(s Site) error { return c.check(s) }
func (c *single) Close() error         { c.closed = true; return nil }

func (c *single) AllGather(s Site, mine []byte) ([][]byte, error) {
	if err := c.check(s); err != nil {
		return nil, err
	}
	return [][]byte{append(make([]byte, 0, len(mine)), mine...)}, nil
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
	r := &singleReducer{comm: c, sum: make([]float32, n)}
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

type singleReducer struct {
	comm  *single
	tree  tree
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
	r.tree.reduce(r.sum, r.slots, 0, len(r.sum))
	return r.sum, nil
}

type singleMatrix struct {
	comm       *single
	rows, cols int
	data       []float32
}

func (m *singleMatrix) Rows() int            { return m.rows }
func (m *singleMatrix) Cols() int            { return m.cols }
func (m *singleMatrix) Data() []float32      { return m.data }
func (m *singleMatrix) Publish(s Site) error { return m.comm.check(s) }
func (m *singleMatrix) Release()             { m.data = nil }

func checkReducer(s Site, n, virtual int) error {
	if virtual < 1 {
		return fmt.Errorf("collective: a reducer at %v: %d virtual slots a rank; there must be at least one", s, virtual)
	}
	return checkSizes("a reducer", s, n, virtual)
}

func checkRoot(s Site, root, world int) error {
	if root < 0 || root >= world {
		return fmt.Errorf("collective: a broadcast at %v: root %d is not a rank of a run of %d", s, root, world)
	}
	return nil
}

func releasedError(what string, s Site) error {
	return fmt.Errorf("collective: %s at %v: its memory was released", what, s)
}
