package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Exchanger moves rows between the ranks of a cooperative batch. Its methods, and those of
// Exchange, are collective: all ranks call them in the same order for the blocks of one level.
type Exchanger interface {
	// Exchange begins the exchange of rows of cols columns that h describes, in a forward pass: the
	// sources of a block, or the destinations of a [graphops.HaloSums].
	Exchange(h *graphops.Halo, cols int) (Exchange, error)
}

// Exchange moves the rows that a Halo h describes. A pass fills and adds the same rows: one of the two
// in the forward pass, and the other one, its adjoint, in the backward pass.
type Exchange interface {
	// Fill fills the halo of rows, row-major, whose first h.Own rows are this rank's, with the rows of
	// their owners.
	Fill(rows []float32) error
	// Add adds to the first h.Own rows of d the rows that the other ranks have for them in the halo of
	// their d, by rank, then row.
	Add(d []float32) error
}

// DeviceExchange is an Exchange between ranks whose backends are on devices: the rows need not go through
// the host's memory. Its methods return at once, and the rows are moved behind the work that the backend
// was given before.
type DeviceExchange interface {
	Exchange
	// FillDevice is Fill, and AddDevice is Add, on device memory.
	FillDevice(rows ops.Buffer) error
	AddDevice(d ops.Buffer) error
}

// SharedExchange is an Exchange between ranks that share memory, on the host. For sums of rows along edges (the
// Sums of its Halo) a rank's own rows are there, and the others read them where they are, so rows are not copied.
type SharedExchange interface {
	Exchange
	// Rows returns this rank's memory for its own rows of the sources, to be written before Parts.
	Rows() ([]float32, error)
	// Parts returns the Rows of each rank, with some memory behind them, which are valid until the pass ends.
	// Unless this rank has called it before, it waits until all ranks have written theirs.
	Parts() (rows [][]float32, err error)
	// Rank is this rank.
	Rank() int
	// Grads returns this rank's memory for the gradient of its own destinations, to be written before Table.
	Grads() ([]float32, error)
	// Table waits until all ranks have written their Grads. It returns a table of rows, and the row of each
	// destination of Sums.Block there.
	Table() (rows []float32, at []int32, err error)
}

// haloRows is a block's sources before the rows that other ranks own are fetched: own are this rank's.
type haloRows struct {
	b   *graphops.Block
	own *Tensor
	// Of ranks that share memory: x, once it has begun, and whether own is there.
	x     SharedExchange
	there bool
}

// place returns the shared memory for this rank's rows of s, in which own is to be computed.
func (f *Fwd) place(s *haloRows) []float32 {
	if s.x == nil {
		s.x = f.exchange(s.b.Halo, s.own.cols).(SharedExchange)
	}
	rows, err := s.x.Rows()
	check(err)
	s.there = true
	return rows
}

// Sources returns the rows of a block's sources [b.NumSrc, F] for the rows that this rank has
// computed, h [b.OwnSrc(), F]. Unless the block has a Halo it is h itself. Otherwise the other rows
// come from the ranks that own them, by Config.Exchanger; the gradients of those rows return there
// and are added, by rank, then row. All ranks call it, run the same operations on its result, and run
// the backward pass, together.
//
// If the block has a [graphops.HaloSums], the rows are fetched when an operation needs them. Two do
// not: Dst needs only this rank's rows, and for Aggregate with Sum or Mean each rank adds up the rows
// that it owns, for all ranks.
//
// nn.Forward calls it between layers; a program that calls layers itself calls it on the input of
// each layer but the first.
//
// On the CPU an h that is not computed yet is computed in the memory of the result, and its gradient
// is added up in place: this rank's rows are not copied. On a device the rows go through the host's
// memory, unless the exchange is a [DeviceExchange].
func (f *Fwd) Sources(b *graphops.Block, h *Tensor) *Tensor {
	const op = "Sources"
	f.check(op, h)
	if h.rows != b.OwnSrc() {
		fail(op, "h is %s and this rank has %d of the block's source rows: h needs one row for each", h.shape(), b.OwnSrc())
	}
	if b.Halo == nil {
		return h
	}
	if b.Halo.From == nil {
		fail(op, "the block belongs to the farthest hop of a cooperative batch, whose rows are not exchanged; to exchange them, set the Loader's InputHalo (in package sample, that of Peers)")
	}
	if f.cfg.Exchanger == nil {
		fail(op, "the block belongs to a cooperative batch, but the pass has no Exchanger to get rows from other ranks; set Config.Exchanger")
	}
	s := &haloRows{b: b, own: h}
	out := &Tensor{f: f, pass: f.pass, rows: b.NumSrc, cols: h.cols, sp: ops.SrcSpace(b), need: h.need, halo: s}
	if b.Halo.Sums == nil {
		f.fetch(out)
	} else if f.sums(b) != nil && h.affine != nil {
		h.affine.into = func() ops.Buffer { return f.be.Wrap(f.place(s)) }
	}
	return out
}

// sums returns the backend if ranks read each other's rows of a block in shared memory, else nil.
func (f *Fwd) sums(b *graphops.Block) ops.PartSummer {
	be, ok := f.be.(ops.PartSummer)
	if x, shares := f.cfg.Exchanger.(interface{ Shares() bool }); !ok || !shares || !x.Shares() || b.Halo.Sums.Reads == nil {
		return nil
	}
	return be
}

// exchange begins an exchange.
func (f *Fwd) exchange(h *graphops.Halo, cols int) Exchange {
	x, err := f.cfg.Exchanger.Exchange(h, cols)
	check(err)
	return x
}

// check ends the pass if an exchange has failed.
func check(err error) {
	if err != nil {
		panic(&ops.Failure{Err: err})
	}
}

// fetch gets the rows of out that other ranks own.
func (f *Fwd) fetch(out *Tensor) {
	b, h := out.halo.b, out.halo.own
	out.halo = nil
	c, own := h.cols, b.Halo.Own*h.cols
	x := f.exchange(b.Halo, c)
	out.buf = f.mem.get(out.rows * c).buf(out.rows * c)
	if dx, ok := x.(DeviceExchange); ok && out.buf.Dev != nil {
		f.deviceFetch(dx, h, out)
		return
	}
	rows := out.buf.Host
	if out.buf.Dev != nil {
		rows = make([]float32, b.NumSrc*c)
	}
	h.CopyTo(rows[:own])
	check(x.Fill(rows))
	if out.buf.Dev != nil {
		f.be.Upload(out.buf, rows)
	}
	f.record(out, func(d ops.Buffer) {
		if d.Dev == nil {
			f.addBack(x, h, out, d.Host)
			return
		}
		host := f.host(d)
		check(x.Add(host))
		sum := f.mem.get(own)
		f.be.Upload(sum.buf(own), host[:own])
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dh, sum.buf(own), 1, acc) })
		f.mem.put(sum)
	}, h)
}

// aggregateAtOwners is Aggregate with Sum or Mean over the edges into b's destinations, of rows of which
// this rank has its own. Each rank adds up its rows by b.Halo.Sums, and then its sums and those of the
// other ranks, by rank.
func (f *Fwd) aggregateAtOwners(rows *haloRows, op ops.Op) *Tensor {
	b, own := rows.b, rows.own
	s, c, n := b.Halo.Sums, own.cols, b.NumDst*own.cols
	f.dense(own)
	var each []float32 // the factors of the destinations; nil: 1
	if op == ops.Mean {
		each = make([]float32, b.NumDst)
		for d := range each {
			each[d] = ops.Share(ops.Mean, b.InDegree(d))
		}
	}
	if be := f.sums(b); be != nil {
		return f.sumInPlace(be, rows, each)
	}
	x := f.exchange(&s.Halo, c)
	all := s.Block.NumDst * c
	sums := f.mem.get(all)
	f.be.SpMM(ops.Sum, sums.buf(all), ops.Buffer{}, s.Block, own.buf, c)
	f.moved(x, sums.buf(all), Exchange.Add, DeviceExchange.AddDevice)
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	var shares ops.Buffer
	if each != nil {
		shares = f.wrap(each)
	}
	scale := func(out, x ops.Buffer) {
		if each != nil {
			f.be.RowScale(out, x, shares, b.NumDst, c, false)
		} else {
			f.be.Unary(ops.ScaleOp, out, x, 1, false)
		}
	}
	scale(out.buf, sums.buf(n))
	f.mem.put(sums)
	return f.record(out, func(d ops.Buffer) {
		rows := f.mem.get(all)
		scale(rows.buf(n), d)
		f.moved(x, rows.buf(all), Exchange.Fill, DeviceExchange.FillDevice)
		f.give(own, func(dh ops.Buffer, acc bool) {
			f.be.SpMMGrad(ops.Sum, dh, rows.buf(all), ops.Buffer{}, s.Block, c, acc)
		})
		f.mem.put(rows)
	}, own)
}

// sumInPlace is aggregateAtOwners between ranks that share memory: each adds up the rows of all ranks for its own
// destinations; each are the factors of these, nil if they are 1. The bits are those of any other exchange.
func (f *Fwd) sumInPlace(be ops.PartSummer, rows *haloRows, each []float32) *Tensor {
	b, own := rows.b, rows.own
	s, c := b.Halo.Sums, own.cols
	if !rows.there {
		copy(f.place(rows), own.buf.Host)
	}
	x := rows.x
	theirs, err := x.Parts()
	check(err)
	parts := make([]ops.Part, 0, len(theirs))
	add := func(r int, dst []int32) {
		parts = append(parts, ops.Part{Edges: s.Reads[r], Dst: dst, Rows: theirs[r]})
	}
	me := x.Rank()
	add(me, nil)
	for r, to := range s.Halo.To {
		if r != me && len(to) > 0 {
			add(r, to)
		}
	}
	out := f.result(b.NumDst, c, ops.DstSpace(b))
	be.SumParts(out.buf, each, parts, c)
	return f.record(out, func(d ops.Buffer) {
		mine, err := x.Grads()
		check(err)
		if each != nil {
			f.be.RowScale(f.be.Wrap(mine), d, f.be.Wrap(each), b.NumDst, c, false)
		} else {
			copy(mine, d.Host)
		}
		table, at, err := x.Table()
		check(err)
		f.give(own, func(dh ops.Buffer, acc bool) { be.SumPartsGrad(dh, table, at, s.Block, c, acc) })
	}, own)
}

// moved exchanges rows, through the host's memory if the exchange knows no other way.
func (f *Fwd) moved(x Exchange, rows ops.Buffer, host func(Exchange, []float32) error, device func(DeviceExchange, ops.Buffer) error) {
	if rows.Dev == nil {
		check(host(x, rows.Host))
		return
	}
	if dx, ok := x.(DeviceExchange); ok {
		check(device(dx, rows))
		return
	}
	data := f.host(rows)
	check(host(x, data))
	f.be.Upload(rows, data)
}

// deviceFetch is fetch on a device.
func (f *Fwd) deviceFetch(x DeviceExchange, h, out *Tensor) {
	n := h.rows * h.cols
	if f.dense(h); n > 0 {
		f.be.Unary(ops.ScaleOp, out.buf.Slice(0, n), h.buf, 1, false)
	}
	check(x.FillDevice(out.buf))
	f.record(out, func(d ops.Buffer) {
		if check(x.AddDevice(d)); n > 0 {
			f.give(h, func(dh ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dh, d.Slice(0, n), 1, acc) })
		}
	}, h)
}

// addBack gives h the gradient d of its rows in out. If it is h's first contribution, h takes the
// memory of out's gradient, whose first rows are its own.
func (f *Fwd) addBack(x Exchange, h, out *Tensor, d []float32) {
	check(x.Add(d))
	if h.grad == nil && h.param == nil && h.part == nil {
		h.grad, out.grad = out.grad, f.mem.get(0)
		return
	}
	f.give(h, func(dh ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dh, f.be.Wrap(d[:h.rows*h.cols]), 1, acc) })
}
