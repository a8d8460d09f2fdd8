package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// part is the place of a tensor that [Fwd.Split] returned: its rows and their gradient are those of a tensor from
// element at on.
type part struct {
	of    *Tensor
	at    int
	all   []*Tensor // the parts of the tensor
	given bool      // its gradient has a contribution
}

// Split returns the rows of x in parts that follow one another: part i has the rows [starts[i], starts[i+1]). starts
// ascends from 0 to the number of rows. The parts share x's memory, and keep their space. It is Rows for each part, but
// the gradients of the parts are written in that of x, without copies.
func (f *Fwd) Split(x *Tensor, starts []int) []*Tensor {
	f.check("Split", x)
	n := len(starts) - 1
	if n < 0 || starts[0] != 0 || starts[n] != x.rows {
		fail("Split", "the parts of a tensor %s begin at %v; they must begin at 0 and end at its rows", x.shape(), starts)
	}
	for i, lo := range starts[:n] {
		if lo > starts[i+1] {
			fail("Split", "part %d of a tensor %s begins at row %d and ends at %d", i, x.shape(), lo, starts[i+1])
		}
	}
	parts := make([]*Tensor, n)
	inPlace := x.sparse == nil && x.rowsOf == nil && x.halo == nil && x.part == nil
	if inPlace {
		f.dense(x)
	}
	for i := range parts {
		lo, hi := starts[i], starts[i+1]
		if !inPlace {
			parts[i] = f.Rows(x, lo, hi)
			continue
		}
		parts[i] = &Tensor{
			f: f, pass: f.pass, rows: hi - lo, cols: x.cols, buf: x.buf.Slice(lo*x.cols, hi*x.cols), sp: x.sp.Sub(lo, hi),
			need: x.need, part: &part{of: x, at: lo * x.cols, all: parts},
		}
	}
	return parts
}

// gradOfPart is gradOf for a part. If the whole has no gradient yet, it gets one whose other parts are not set: see fill.
func (f *Fwd) gradOfPart(x *Tensor) (ops.Buffer, bool) {
	p := x.part
	whole := p.of
	n := whole.rows * whole.cols
	var d ops.Buffer
	var acc bool
	switch {
	case whole.param != nil:
		if d, acc = f.gradOf(whole); !acc {
			f.be.Zero(d)
			acc = true
		}
	case whole.grad == nil:
		whole.grad, whole.split = f.mem.get(n), p.all
		fallthrough
	case len(whole.split) > 0 && whole.split[0] == p.all[0]:
		d, acc = whole.grad.buf(n), p.given
	default: // the gradient has other contributions, or is split otherwise
		d, acc = f.gradOf(whole)
	}
	p.given = true
	return d.Slice(p.at, p.at+x.rows*x.cols), acc
}

// fill completes a gradient of which only parts have contributions: the others are 0.
func (f *Fwd) fill(x *Tensor) {
	for _, t := range x.split {
		if p := t.part; !p.given {
			f.be.Zero(x.grad.buf(x.rows*x.cols).Slice(p.at, p.at+t.rows*t.cols))
			p.given = true
		}
	}
	x.split = nil
}

// passOn gives x the gradient d, elements [at, …) of the gradient of out, which nothing else reads afterwards.
func (f *Fwd) passOn(x, out *Tensor, at int, d ops.Buffer) {
	if x.need && x.grad == nil && x.param == nil && x.part == nil {
		x.grad = out.grad.part(at, d.N)
		return
	}
	f.give(x, func(dx ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dx, d, 1, acc) })
}
