package collective

import "encoding/binary"

var _ Reducer = (*linkedReducer)(nil)

// linkedReducer keeps a rank's slots in ordinary memory. A sum travels in pieces: while the pieces of
// one exchange are summed, they are in the processor's cache.
type linkedReducer struct {
	comm   *linked
	n      int
	slots  [][]float32
	sum    []float32
	spans  [][]span    // the subtrees of each rank
	own    [][]float32 // the sums of this rank's subtrees: the slots themselves, or separate memory
	local  []*joins    // of the slots of each of them, nil for a single slot
	got    [][]float32 // the sums of all subtrees in one piece of this rank's part; other ranks' sums need memory
	joins  *joins      // of these
	piece  int         // elements
	pieces int         // of a rank's part of the elements

	leaves     [][]float32
	send, recv [][]byte
}

// linkPiece is the number of bytes of other ranks' sums that a rank receives in one exchange: they
// fit into the second-level cache, and take much longer than the exchange's start.
const linkPiece = 1 << 20

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
	var all []span
	most := 0
	for rank := range c.world {
		spans := subtrees(nil, rank*virtual, (rank+1)*virtual, c.world*virtual)
		r.spans = append(r.spans, spans)
		all = append(all, spans...)
		most = max(most, len(spans))
	}
	part := (n + c.world - 1) / c.world
	r.piece = max(1, min(part, max(treeBlock, linkPiece/4/len(all))))
	r.pieces = (part + r.piece - 1) / r.piece
	for rank, spans := range r.spans {
		for _, sp := range spans {
			if rank != c.rank {
				r.got = append(r.got, make([]float32, r.piece))
				continue
			}
			own, local := r.slots[sp.lo-rank*virtual], (*joins)(nil)
			if sp.hi-sp.lo > 1 {
				own, local = make([]float32, n), joinSlots(sp.hi-sp.lo)
			}
			r.own, r.local, r.got = append(r.own, own), append(r.local, local), append(r.got, nil)
		}
	}
	r.joins = newJoins(all, c.world*virtual)
	r.leaves = make([][]float32, max(len(all), virtual))
	r.send, r.recv = make([][]byte, (1+most)*c.world), make([][]byte, (1+most)*c.world)
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
	steps := make([]Step, r.pieces+1)
	for i := range steps {
		steps[i] = func() (_, _ [][]byte, err error) {
			clear(r.send)
			clear(r.recv)
			if i > 0 {
				r.gather(i - 1)
			}
			if i < r.pieces {
				r.scatter(i)
			}
			return r.send, r.recv, nil
		}
	}
	if err := c.run(opReduce, s, r.n, len(r.slots), 0, nil, steps...); err != nil {
		return nil, err
	}
	return r.sum, nil
}

// region is piece i of a rank's part of the elements. Pieces can be empty.
func (r *linkedReducer) region(rank, i int) (lo, hi int) {
	lo, hi = Share(r.n, rank, r.comm.world)
	lo = min(lo+i*r.piece, hi)
	return lo, min(lo+r.piece, hi)
}

// scatter sends each rank the sums of this rank's subtrees in piece i of that rank's part.
func (r *linkedReducer) scatter(i int) {
	c := r.comm
	for rank := range c.world {
		lo, hi := r.region(rank, i)
		for k, own := range r.own {
			if j := r.local[k]; j != nil {
				sp := r.spans[c.rank][k]
				slots := r.leaves[:0]
				for v := sp.lo; v < sp.hi; v++ {
					slots = append(slots, r.slots[v-c.rank*len(r.slots)][lo:hi])
				}
				j.sum(own[lo:hi], slots, 0, hi-lo)
			}
			r.send[(1+k)*c.world+rank] = float32Bytes(own[lo:hi])
		}
	}
	lo, hi := r.region(c.rank, i)
	at := 0
	for rank, spans := range r.spans {
		for k := range spans {
			if rank != c.rank {
				r.recv[(1+k)*c.world+rank] = float32Bytes(r.got[at][:hi-lo])
			}
			at++
		}
	}
}

// gather adds piece i of this rank's part and sends it to all.
func (r *linkedReducer) gather(i int) {
	c := r.comm
	lo, hi := r.region(c.rank, i)
	leaves := r.leaves[:0]
	for rank, spans := range r.spans {
		for k := range spans {
			if rank == c.rank {
				leaves = append(leaves, r.own[k][lo:hi])
			} else {
				leaves = append(leaves, r.got[len(leaves)][:hi-lo])
			}
		}
	}
	r.joins.sum(r.sum[lo:hi], leaves, 0, hi-lo)
	for rank := range c.world {
		a, b := r.region(rank, i)
		r.send[rank], r.recv[rank] = float32Bytes(r.sum[lo:hi]), float32Bytes(r.sum[a:b])
	}
}

var _ Matrix = (*linkedMatrix)(nil)

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
