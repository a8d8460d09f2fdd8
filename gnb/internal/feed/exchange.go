package feed

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Exchanger moves the rows of cooperative batches between ranks, for the passes of one network; it
// implements [tensor.Exchanger]. If the ranks share memory, a rank writes the rows that another
// needs into that rank's part of a matrix, which is kept from pass to pass; otherwise rows are sent.
// For the sums of a [graphops.HaloSums], a rank reads the rows of the others where they are.
type Exchanger struct {
	o     TeamOptions
	kept  []*exchange
	used  int           // exchanges of this pass
	met   int64         // how often the ranks have met here
	moved *atomic.Int64 // bytes from other ranks
}

// Mover moves rows between the devices of the ranks, for a [tensor.DeviceExchange]. Its methods are collective.
type Mover interface {
	Fill(h *graphops.Halo, rows ops.Buffer, cols int) error
	Add(h *graphops.Halo, d ops.Buffer, cols int) error
}

// Begin begins a pass: the memory of the previous one is used again.
func (e *Exchanger) Begin() { e.used = 0 }

// Await calls read, which waits for what a device computes in this pass. If the pass has moved rows between
// devices, which all ranks do alike, it meets the other ranks before: what the device computes may depend on rows of a
// rank that is stuck, and a rank that waits in a collective is seen to wait.
func (e *Exchanger) Await(read func() error) error {
	if e.o.Mover != nil && e.used > 0 {
		if err := e.o.Comm.Barrier(e.o.Site("step of a cooperative batch")); err != nil {
			return err
		}
	}
	return read()
}

// exchange is one exchange of a pass, with its memory.
type exchange struct {
	e    *Exchanger
	halo *graphops.Halo
	cols int
	room int  // floats per rank in rows and grads
	back bool // the next move belongs to the backward pass
	// Row r of rows is rank r's halo, of which each owner writes a part; row r of grads is what rank r has for the
	// owners of its halo. Row r of mine, and of spread, are the Rows and the Grads of a [tensor.SharedExchange] at
	// rank r.
	rows, grads, mine, spread shared
	summed                    bool    // the ranks know that mine has been written
	at                        []int32 // of Table
}

// shared is a matrix [ranks, room] that ranks write before they meet and read after it. It is nil before its first use,
// and if ranks do not share memory.
type shared struct {
	collective.Matrix
	read int64 // Exchanger.met when the ranks were last told to read
}

// Exchange implements [tensor.Exchanger].
func (e *Exchanger) Exchange(h *graphops.Halo, cols int) (tensor.Exchange, error) {
	if e.used == len(e.kept) {
		e.kept = append(e.kept, &exchange{e: e})
	}
	x := e.kept[e.used]
	e.used++
	x.halo, x.cols, x.back = h, cols, false
	if e.o.Mover != nil {
		return deviceExchange{x}, nil
	}
	// Every rank decides alike: Most and cols are the same everywhere.
	most := h.Most
	if h.Sums != nil {
		most = max(most, h.Sums.Halo.Most)
	}
	if need := most * cols; x.room == 0 || need > x.room || x.room%max(1, cols) != 0 {
		const page = 1 << 10 // rows of a rank: they take whole pages
		x.release()
		x.room = (most + most/4 + page) / page * page * max(1, cols)
	}
	if collective.SharesMemory(e.o.Comm) {
		return sharedExchange{x}, nil
	}
	return x, nil
}

// direction returns the stage to which a move's waiting counts, and the move's name. It is called once for each move.
func (x *exchange) direction() (stage, kind string) {
	stage, kind = x.stage(), "rows of a batch"
	if x.back {
		kind = "gradients of a batch's rows"
	}
	x.back = true
	return stage, kind
}

// stage is the stage to which the next move's waiting counts.
func (x *exchange) stage() string {
	if x.back {
		return runfile.StageBackward
	}
	return runfile.StageForward
}

// write makes a matrix with a row of n floats for each rank ready to be written: other ranks may still read what it held.
func (x *exchange) write(s *shared, stage string, n int) (err error) {
	e := x.e
	switch {
	case s.Matrix == nil:
		s.Matrix, err = e.matrix(stage, n)
	case s.read == e.met:
		err = e.meet(stage, func() error { return e.o.Comm.Barrier(e.o.Site("rows of a batch")) })
	}
	return err
}

// readable tells the other ranks to read what this one has written to a matrix.
func (x *exchange) readable(s *shared, stage, kind string) error {
	e := x.e
	s.read = e.met + 1
	return e.meet(stage, func() error { return e.o.Comm.Barrier(e.o.Site(kind)) })
}

// matrix makes a matrix with a row of n floats for each rank.
func (e *Exchanger) matrix(stage string, n int) (m collective.Matrix, err error) {
	err = e.meet(stage, func() error {
		m, err = e.o.Comm.NewMatrix(e.o.Site("memory for the rows of a batch"), e.o.Comm.Size(), n)
		return err
	})
	return m, err
}

func (x *exchange) release() {
	for _, s := range []*shared{&x.rows, &x.grads, &x.mine, &x.spread} {
		if s.Matrix != nil {
			s.Release()
		}
		*s = shared{}
	}
}

// meet makes a collective and reports the time that this rank waited in it.
func (e *Exchanger) meet(stage string, collect func() error) error {
	e.met++
	c, ok := e.o.Comm.(collective.Waiter)
	if !ok || e.o.Waited == nil {
		return collect()
	}
	before := c.Waited()
	err := collect()
	e.o.Waited(stage, c.Waited()-before)
	return err
}

// deviceExchange is an exchange between devices; a pass on the host sends messages.
type deviceExchange struct{ *exchange }

// FillDevice implements [tensor.DeviceExchange].
func (x deviceExchange) FillDevice(rows ops.Buffer) error {
	x.e.moved.Add(int64(4 * (rows.N - x.halo.Own*x.cols)))
	return x.e.o.Mover.Fill(x.halo, rows, x.cols)
}

// AddDevice implements [tensor.DeviceExchange].
func (x deviceExchange) AddDevice(d ops.Buffer) error {
	for _, to := range x.halo.To {
		x.e.moved.Add(int64(4 * x.cols * len(to)))
	}
	return x.e.o.Mover.Add(x.halo, d, x.cols)
}

// of is rank r's part of a matrix.
func (x *exchange) of(s *shared, r int) []float32 {
	return s.Data()[r*x.room : (r+1)*x.room]
}

// Fill implements [tensor.Exchange].
func (x *exchange) Fill(rows []float32) error {
	e, c := x.e, x.cols
	halo := rows[x.halo.Own*c:]
	stage, kind := x.direction()
	if !collective.SharesMemory(e.o.Comm) {
		got, err := x.send(stage, kind, x.halo.To, func(r, i int) []float32 {
			at := int(x.halo.To[r][i]) * c
			return rows[at : at+c]
		})
		if err != nil {
			return err
		}
		for r, from := range x.halo.From {
			if err := x.sized(r, got[r], len(from)); err != nil {
				return err
			}
			get(halo[:len(from)*c], got[r])
			halo = halo[len(from)*c:]
		}
		return nil
	}
	if err := x.write(&x.rows, stage, x.room); err != nil {
		return err
	}
	for r, to := range x.halo.To {
		if len(to) == 0 {
			continue
		}
		dst := x.of(&x.rows, r)[x.halo.At[r]*c:]
		e.each(len(to), c, func(lo, hi int) {
			simd.GatherRows(dst[lo*c:hi*c], &simd.Rows{Data: rows, Stride: c}, c, to[lo:hi])
		})
	}
	if err := x.readable(&x.rows, stage, kind); err != nil {
		return err
	}
	mine := x.of(&x.rows, e.o.Comm.Rank())
	e.each(len(halo), 1, func(lo, hi int) { copy(halo[lo:hi], mine[lo:hi]) })
	e.moved.Add(int64(4 * len(halo)))
	return nil
}

// Add implements [tensor.Exchange].
func (x *exchange) Add(d []float32) error {
	e, c := x.e, x.cols
	halo := d[x.halo.Own*c:]
	stage, kind := x.direction()
	if !collective.SharesMemory(e.o.Comm) {
		starts := make([]int, len(x.halo.From)+1)
		for r, from := range x.halo.From {
			starts[r+1] = starts[r] + len(from)
		}
		got, err := x.send(stage, kind, x.halo.From, func(r, i int) []float32 {
			at := (starts[r] + i) * c
			return halo[at : at+c]
		})
		if err != nil {
			return err
		}
		grad := make([]float32, 0)
		for r, to := range x.halo.To {
			if err := x.sized(r, got[r], len(to)); err != nil {
				return err
			}
			if cap(grad) < len(to)*c {
				grad = make([]float32, len(to)*c)
			}
			grad = grad[:len(to)*c]
			get(grad, got[r])
			e.add(d, to, grad, c)
		}
		return nil
	}
	if err := x.write(&x.grads, stage, x.room); err != nil {
		return err
	}
	mine := x.of(&x.grads, e.o.Comm.Rank())
	e.each(len(halo), 1, func(lo, hi int) { copy(mine[lo:hi], halo[lo:hi]) })
	if err := x.readable(&x.grads, stage, kind); err != nil {
		return err
	}
	for r, to := range x.halo.To {
		if len(to) > 0 {
			e.add(d, to, x.of(&x.grads, r)[x.halo.At[r]*c:], c)
			e.moved.Add(int64(4 * c * len(to)))
		}
	}
	return nil
}

// add adds the rows of src to the given rows of d, which are different.
func (e *Exchanger) add(d []float32, rows []int32, src []float32, c int) {
	e.each(len(rows), c, func(lo, hi int) {
		for i, row := range rows[lo:hi] {
			simd.Add(d[int(row)*c:(int(row)+1)*c], src[(lo+i)*c:(lo+i+1)*c])
		}
	})
}

// each runs f over parts of n rows of c columns.
func (e *Exchanger) each(n, c int, f func(lo, hi int)) {
	parallel.For(e.o.Threads, n, max(16, (1<<14)/max(c, 1)), f)
}

// send sends the listed rows to each rank and returns what each rank sent to this one.
func (x *exchange) send(stage, kind string, lists [][]int32, row func(r, i int) []float32) (got [][]byte, err error) {
	out := make([][]byte, len(lists))
	for r, list := range lists {
		out[r] = make([]byte, 0, 4*x.cols*len(list))
		for i := range list {
			for _, v := range row(r, i) {
				out[r] = binary.LittleEndian.AppendUint32(out[r], math.Float32bits(v))
			}
		}
	}
	e := x.e
	err = e.meet(stage, func() error {
		got, err = e.o.Comm.AllToAll(e.o.Site(kind), out)
		return err
	})
	for r := range got {
		if r != e.o.Comm.Rank() {
			e.moved.Add(int64(len(got[r])))
		}
	}
	return got, err
}

// sized checks the length of a message of n rows.
func (x *exchange) sized(r int, b []byte, n int) error {
	if len(b) != 4*x.cols*n {
		return fmt.Errorf("gnb: rank %d sent %d bytes for %d rows of %d columns; all ranks must run the same program", r, len(b), n, x.cols)
	}
	return nil
}

// get reads float32 numbers.
func get(out []float32, b []byte) {
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}
