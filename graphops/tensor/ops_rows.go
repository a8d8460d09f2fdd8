package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// LogSoftmax is, row by row, x[r,c] - log Σ_j e^x[r,j], computed relative to the row's maximum so
// that it does not overflow. The rows keep their space.
func (f *Fwd) LogSoftmax(x *Tensor) *Tensor {
	f.use("LogSoftmax", x)
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	f.be.LogSoftmax(out.buf, x.buf, n, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.LogSoftmaxGrad(dx, d, out.buf, n, c, acc) })
	}, x)
}

// L2Normalize is, row by row, x / max(‖x‖₂, 1e-12): rows of length 1, and zeros
// stay zeros. The rows keep their space.
func (f *Fwd) L2Normalize(x *Tensor) *Tensor {
	f.use("L2Normalize", x)
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	norm := f.mem.get(n).buf(n)
	f.be.L2Normalize(out.buf, norm, x.buf, n, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.L2NormalizeGrad(dx, d, out.buf, norm, n, c, acc) })
	}, x)
}

// Concat joins the columns of its arguments: all have N rows, out is [N, Σ cols]. The result has
// the space on which all arguments with a space agree.
func (f *Fwd) Concat(xs ...*Tensor) *Tensor {
	if len(xs) == 0 {
		fail("Concat", "it needs at least one tensor")
	}
	f.use("Concat", xs...)
	n, cols := xs[0].rows, 0
	for i, x := range xs {
		if x.rows != n {
			fail("Concat", "argument 0 is %s and argument %d is %s: the rows must be equal", xs[0].shape(), i, x.shape())
		}
		cols += x.cols
	}
	xs = append([]*Tensor(nil), xs...)
	out := f.result(n, cols, join(xs...))
	at := 0
	for _, x := range xs {
		f.be.CopyCols(out.buf, cols, at, x.buf, x.cols, 0, n, x.cols, false)
		at += x.cols
	}
	return f.record(out, func(d ops.Buffer) {
		at := 0
		for _, x := range xs {
			f.give(x, func(dx ops.Buffer, acc bool) { f.be.CopyCols(dx, x.cols, 0, d, cols, at, n, x.cols, acc) })
			at += x.cols
		}
	}, xs...)
}

// Cols returns a copy of the columns [lo, hi) of x [N, F], out [N, hi-lo]. The rows keep their space.
func (f *Fwd) Cols(x *Tensor, lo, hi int) *Tensor {
	f.use("Cols", x)
	if lo < 0 || hi < lo || hi > x.cols {
		fail("Cols", "columns [%d,%d) of a tensor %s: they must satisfy 0 <= lo <= hi <= %d", lo, hi, x.shape(), x.cols)
	}
	n, c, w := x.rows, x.cols, hi-lo
	out := f.result(n, w, x.sp)
	f.be.CopyCols(out.buf, w, 0, x.buf, c, lo, n, w, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) {
			if !acc {
				f.be.Zero(dx)
			}
			f.be.CopyCols(dx, c, lo, d, w, 0, n, w, true)
		})
	}, x)
}

// Rows returns the rows [lo, hi) of x, sharing x's memory. They keep their space (a part of a
// block's edges has none).
func (f *Fwd) Rows(x *Tensor, lo, hi int) *Tensor {
	f.check("Rows", x)
	if lo < 0 || hi < lo || hi > x.rows {
		fail("Rows", "rows [%d,%d) of a tensor %s: they must satisfy 0 <= lo <= hi <= %d", lo, hi, x.shape(), x.rows)
	}
	sp := x.sp
	if lo > 0 || hi < x.rows {
		sp = sp.Sub(lo, hi)
	}
	return f.view(x, lo, hi, sp)
}

// view returns rows [lo, hi) of x in the space sp, without a copy.
func (f *Fwd) view(x *Tensor, lo, hi int, sp *ops.Space) *Tensor {
	switch {
	case x.sparse != nil:
		return f.sparseRows(x, lo, hi, sp)
	case x.rowsOf != nil:
		return f.someRows(x, lo, hi, sp)
	case x.halo != nil && hi <= x.halo.own.rows:
		return f.view(x.halo.own, lo, hi, sp)
	}
	f.dense(x)
	c := x.cols
	out := &Tensor{f: f, pass: f.pass, rows: hi - lo, cols: c, buf: x.buf.Slice(lo*c, hi*c), sp: sp}
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) {
			if !acc {
				f.be.Zero(dx.Slice(0, lo*c))
				f.be.Zero(dx.Slice(hi*c, x.rows*c))
			}
			f.be.Unary(ops.ScaleOp, dx.Slice(lo*c, hi*c), d, 1, acc)
		})
	}, x)
}

// Stack puts the rows of its arguments one under the other: all have F columns, out is [Σ rows, F], without a
// row space. Cost: a copy, except of products that nothing has needed before: they are computed in place.
func (f *Fwd) Stack(xs ...*Tensor) *Tensor {
	if len(xs) == 0 {
		fail("Stack", "it needs at least one tensor")
	}
	f.check("Stack", xs...)
	rows, cols := 0, xs[0].cols
	for i, x := range xs {
		if x.cols != cols {
			fail("Stack", "argument 0 is %s and argument %d is %s: the columns must be equally many", xs[0].shape(), i, x.shape())
		}
		rows += x.rows
	}
	xs = append([]*Tensor(nil), xs...)
	out := f.result(rows, cols, nil)
	at := 0
	for _, x := range xs {
		part := out.buf.Slice(at, at+x.rows*cols)
		if x.affine != nil && x.affine.into == nil {
			f.computeIn(x, part)
		} else {
			f.dense(x)
			f.be.Unary(ops.ScaleOp, part, x.buf, 1, false)
		}
		at += x.rows * cols
	}
	return f.record(out, func(d ops.Buffer) {
		at := 0
		for _, x := range xs {
			f.passOn(x, out, at, d.Slice(at, at+x.rows*cols))
			at += x.rows * cols
		}
	}, xs...)
}

// Gather returns rows of h [N,F] in any order, with repeats: out[i,:] = h[rows[i],:], [len(rows),F],
// without a row space. The gradient of a row is the sum over its copies, in ascending order of i.
// rows is kept until the pass ends and must not change. Cost: a copy; with a gradient, a counting
// sort of rows too.
func (f *Fwd) Gather(h *Tensor, rows []int32) *Tensor {
	f.check("Gather", h)
	indptr := make([]int64, len(rows)+1)
	for i, r := range rows {
		if uint(r) >= uint(h.rows) {
			fail("Gather", "row %d was asked for at position %d, but h is %s", r, i, h.shape())
		}
		indptr[i+1] = int64(i + 1)
	}
	if h.sparse != nil {
		return f.sparseGather(h, rows)
	}
	f.dense(h)
	c := h.cols
	// Each row is the message to a destination of its own.
	b := f.sparseBlock(graphops.HostBlock{NumDst: len(rows), NumSrc: h.rows, Indptr: indptr, Indices: rows}.Block())
	out := f.result(len(rows), c, nil)
	f.be.GatherSrc(out.buf, b, h.buf, c)
	return f.record(out, func(d ops.Buffer) {
		f.give(h, func(dh ops.Buffer, acc bool) { f.be.ScatterSrc(dh, b, d, c, acc) })
	}, h)
}

// RowDot is out[r] = Σ_c x[r,c]·y[r,c], [N,1]: x and y are [N,F]. The rows keep their space as in
// Add. Cost: 2·N·F flops, and the same for each gradient.
func (f *Fwd) RowDot(x, y *Tensor) *Tensor {
	f.use("RowDot", x, y)
	if x.rows != y.rows || x.cols != y.cols {
		fail("RowDot", "x is %s and y is %s: the shapes must be equal", x.shape(), y.shape())
	}
	n, c := x.rows, x.cols
	out := f.result(n, 1, join(x, y))
	f.be.RowDot(out.buf, x.buf, y.buf, n, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.RowScale(dx, y.buf, d, n, c, acc) })
		f.give(y, func(dy ops.Buffer, acc bool) { f.be.RowScale(dy, x.buf, d, n, c, acc) })
	}, x, y)
}

// Reshape returns x's elements, in their order, as a matrix [rows,cols] with as many elements. It
// shares x's memory, and has no row space.
func (f *Fwd) Reshape(x *Tensor, rows, cols int) *Tensor {
	f.use("Reshape", x)
	if rows < 0 || cols < 0 || rows*cols != x.rows*x.cols {
		fail("Reshape", "x is %s, which has not the elements of [%d,%d]", x.shape(), rows, cols)
	}
	out := &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, buf: x.buf}
	return f.record(out, func(d ops.Buffer) {
		f.passOn(x, out, 0, d)
	}, x)
}
