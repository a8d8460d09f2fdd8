package collective

import "encoding/binary"

// linkedReducer keeps a rank's slots in ordinary memory.
type linkedReducer struct {
	comm  *linked
	n     int
	slots [][]float32
	sum   []float32
	spans [][]span    // the subtrees of each rank
	own   [][]float32 // the sums of this rank's subtrees: slots, or memory of their own
	local []*joins    // of the slots of each of them
	got   [][]float32 // the sums of all subtrees, in this rank's part of the elements
	joins *joins      // of these
}

func (c *linked) NewReducer(s Site, n, virtual int) (_ Reducer, err error) {
	if err := checkReducer(s, n, virtual); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	if err := c.run(opNewReducer, s, n, virtual, 0, nil); err != nil {
		return nil, err
	}
	r := &linkedReducer{comm: c, n: n, sum: make([]float32, n)}
	for range virtual {
		r.slots = append(r.slots, make([]float32, n))
	}
	lo, hi := Share(n, c.rank, c.world)
	var all []span
	for rank := range c.world {
		spans := subtrees(nil, rank*virtual, (rank+1)*virtual, c.world*virtual)
		for _, sp := range spans {
			if rank != c.rank {
				r.got = append(r.got, make([]float32, hi-lo))
				continue
			}
			own := r.slots[sp.lo-rank*virtual]
			if sp.hi-sp.lo > 1 {
				own = make([]float32, n)
			}
			r.own = append(r.own, own)
			r.local = append(r.local, joinSlots(sp.hi-sp.lo))
			r.got = append(r.got, own[lo:hi])
		}
		r.spans = append(r.spans, spans)
		all = append(all, spans...)
	}
	r.joins = newJoins(all, c.world*virtual)
	return r, nil
}

func (r *linkedReducer) Slot(v int) []float32 { return r.slots[v] }

func (r *linkedReducer) Release() { *r = linkedReducer{comm: r.comm} }

func (r *linkedReducer) Reduce(s Site) (_ []float32, err error) {
	c := r.comm
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	if r.slots == nil {
		return nil, releasedError("a sum", s)
	}
	most := 0
	for _, spans := range r.spans {
		most = max(most, len(spans))
	}
	steps := make([]Step, 0, most+1)
	for k := range most {
		steps = append(steps, func() (_, _ [][]byte, err error) { return r.scatter(k) })
	}
	err = c.run(opReduce, s, r.n, len(r.slots), 0, nil, append(steps, r.gather)...)
	if err != nil {
		return nil, err
	}
	return r.sum, nil
}

// scatter exchanges the k-th subtree of each rank: a rank gets its part of the elements.
func (r *linkedReducer) scatter(k int) (_, _ [][]byte, err error) {
	c := r.comm
	at := 0
	for rank, spans := range r.spans {
		c.send[rank], c.recv[rank] = nil, nil
		if rank == c.rank && k < len(spans) {
			if sp := spans[k]; sp.hi-sp.lo > 1 {
				first := rank * len(r.slots)
				r.local[k].sum(r.own[k], r.slots[sp.lo-first:sp.hi-first])
			}
		}
		if k < len(spans) {
			c.recv[rank] = float32Bytes(r.got[at+k])
		}
		at += len(spans)
	}
	if k < len(r.own) {
		for rank := range c.world {
			lo, hi := Share(r.n, rank, c.world)
			c.send[rank] = float32Bytes(r.own[k][lo:hi])
		}
	}
	return c.send, c.recv, nil
}

// gather adds this rank's part and exchanges the parts.
func (r *linkedReducer) gather() (_, _ [][]byte, err error) {
	c := r.comm
	part := func(rank int) []float32 {
		lo, hi := Share(r.n, rank, c.world)
		return r.sum[lo:hi]
	}
	mine := part(c.rank)
	r.joins.sum(mine, r.got)
	for rank := range c.world {
		c.send[rank], c.recv[rank] = float32Bytes(mine), float32Bytes(part(rank))
	}
	return c.send, c.recv, nil
}

// linkedMatrix is a copy of the matrix on each rank.
type linkedMatrix struct {
	comm       *linked
	rows, cols int
	data       []float32
}

func (c *linked) NewMatrix(s Site, rows, cols int) (_ Matrix, err error) {
	if err := checkSizes("a matrix", s, rows, cols); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	if err := c.run(opNewMatrix, s, rows, cols, 0, nil); err != nil {
		return nil, err
	}
	return &linkedMatrix{comm: c, rows: rows, cols: cols, data: make([]float32, rows*cols)}, nil
}

func (m *linkedMatrix) Rows() int       { return m.rows }
func (m *linkedMatrix) Cols() int       { return m.cols }
func (m *linkedMatrix) Data() []float32 { return m.data }
func (m *linkedMatrix) Release()        { m.data = nil }

// Publish sends this rank's rows to all others.
func (m *linkedMatrix) Publish(s Site, lo, hi int) (err error) {
	c := m.comm
	if err := checkRows(s, lo, hi, m.rows); err != nil {
		return err
	}
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	if m.data == nil && m.rows*m.cols > 0 {
		return releasedError("publishing a matrix", s)
	}
	var rows [16]byte
	binary.LittleEndian.PutUint64(rows[:], uint64(lo))
	binary.LittleEndian.PutUint64(rows[8:], uint64(hi))
	return c.run(opPublish, s, m.rows, m.cols, len(rows), rows[:], func() (_, _ [][]byte, err error) {
		for r := range c.world {
			from, to := binary.LittleEndian.Uint64(c.short(r)), binary.LittleEndian.Uint64(c.short(r)[8:])
			c.send[r] = float32Bytes(m.data[lo*m.cols : hi*m.cols])
			c.recv[r] = float32Bytes(m.data[int(from)*m.cols : int(to)*m.cols])
		}
		return c.send, c.recv, nil
	})
}
