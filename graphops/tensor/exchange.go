package tensor

import "github.com/graphnb/graphnb/graphops"

// Exchanger moves rows between the ranks of a cooperative batch. Its methods, and those of
// Exchange, are collective: all ranks call them in the same order for the blocks of one level.
type Exchanger interface {
	// Exchange begins the exchange of rows of cols columns, the sources of b, which has a Halo.
	Exchange(b *graphops.Block, cols int) (Exchange, error)
}

// Exchange moves the rows of one block's sources and their gradients.
type Exchange interface {
	// Fill fills the halo of rows [b.NumSrc·cols], row-major, whose first b.Halo.Own rows are this
	// rank's, with the rows of their owners.
	Fill(rows []float32) error
	// Add adds to the first b.Halo.Own rows of d [b.NumSrc·cols] the rows that the other ranks have
	// for them in the halo of their d, by rank, then row.
	Add(d []float32) error
}

// DeviceExchange is an Exchange between ranks whose backends are on devices: the rows need not go through
// the host's memory. Its methods return at once, and the rows are moved behind the work that the backend
// was given before.
type DeviceExchange interface {
	Exchange
	// FillDevice is Fill, and AddDevice is Add, on device memory.
	FillDevice(rows Buffer) error
	AddDevice(d Buffer) error
}

// Sources returns the rows of a block's sources [b.NumSrc, F] for the rows that this rank has
// computed, h [b.OwnSrc(), F]. Unless the block has a Halo it is h itself. Otherwise the other rows
// come from the ranks that own them, by Config.Exchanger; the gradients of those rows return there
// and are added, by rank, then row. All ranks call it, and run the backward pass, together.
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
	c, own := h.cols, b.Halo.Own*h.cols
	x, err := f.cfg.Exchanger.Exchange(b, c)
	if err != nil {
		panic(&Failure{err})
	}
	out := f.result(b.NumSrc, c, SrcSpace(b))
	if dx, ok := x.(DeviceExchange); ok && out.buf.Dev != nil {
		return f.deviceSources(dx, h, out)
	}
	rows := out.buf.Host
	if out.buf.Dev != nil {
		rows = make([]float32, b.NumSrc*c)
	}
	h.CopyTo(rows[:own])
	if err := x.Fill(rows); err != nil {
		panic(&Failure{err})
	}
	if out.buf.Dev != nil {
		f.be.Upload(out.buf, rows)
	}
	return f.record(out, func(d Buffer) {
		if d.Dev == nil {
			f.addBack(x, h, out, d.Host)
			return
		}
		host := f.host(d)
		if err := x.Add(host); err != nil {
			panic(&Failure{err})
		}
		sum := f.mem.get(own)
		f.be.Upload(sum.buf(own), host[:own])
		f.give(h, func(dh Buffer, acc bool) { f.be.Unary(ScaleOp, dh, sum.buf(own), 1, acc) })
		f.mem.put(sum)
	}, h)
}

// deviceSources is Sources on a device, with out for the result.
func (f *Fwd) deviceSources(x DeviceExchange, h, out *Tensor) *Tensor {
	n := h.rows * h.cols
	try := func(err error) {
		if err != nil {
			panic(&Failure{err})
		}
	}
	if f.dense(h); n > 0 {
		f.be.Unary(ScaleOp, out.buf.Slice(0, n), h.buf, 1, false)
	}
	try(x.FillDevice(out.buf))
	return f.record(out, func(d Buffer) {
		if try(x.AddDevice(d)); n > 0 {
			f.give(h, func(dh Buffer, acc bool) { f.be.Unary(ScaleOp, dh, d.Slice(0, n), 1, acc) })
		}
	}, h)
}

// addBack gives h the gradient d of its rows in out. If it is h's first contribution, h takes the
// memory of out's gradient, whose first rows are its own.
func (f *Fwd) addBack(x Exchange, h, out *Tensor, d []float32) {
	if err := x.Add(d); err != nil {
		panic(&Failure{err})
	}
	if h.grad == nil && h.param == nil {
		h.grad, out.grad = out.grad, f.mem.get(0)
		return
	}
	f.give(h, func(dh Buffer, acc bool) { f.be.Unary(ScaleOp, dh, f.be.Wrap(d[:h.rows*h.cols]), 1, acc) })
}
