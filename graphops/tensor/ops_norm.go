package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// RowNorm is, row by row, (x - mean) / √(variance + eps), with the mean and the
// variance (the mean of squared distances) of the row. The rows keep their space.
func (f *Fwd) RowNorm(x *Tensor, eps float64) *Tensor {
	f.use("RowNorm", x)
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	inv := f.mem.get(n).buf(n)
	f.be.RowNorm(out.buf, inv, x.buf, n, c, float32(eps))
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.RowNormGrad(dx, d, out.buf, inv, n, c, acc) })
	}, x)
}

// Track moves a parameter that is not trained, such as a running mean, towards x of the same size:
// p.W ← keep·p.W + share·x in float64, at once. On a device that keeps a copy of p.W ([Keeper]),
// only the copy changes. It does nothing with Config.KeepFixed.
func (f *Fwd) Track(p *Param, x *Tensor, keep, share float64) {
	f.use("Track", x)
	if len(p.W) != x.rows*x.cols {
		fail("Track", "parameter %q has %d elements and x is %s", p.Name, len(p.W), x.shape())
	}
	if f.cfg.KeepFixed {
		return
	}
	to := f.wrap(p.W)
	f.be.Track(to, x.buf, keep, share)
	if to.Dev == nil {
		return
	}
	if _, kept := f.kept(p.W); !kept {
		f.be.Download(p.W, to)
	}
}

// MulCols is w[c]·x[r,c]: x [N,F], w [1,F]. The rows keep x's space.
func (f *Fwd) MulCols(x, w *Tensor) *Tensor {
	f.use("MulCols", x, w)
	if w.rows != 1 || w.cols != x.cols {
		fail("MulCols", "x is %s and w is %s: w must be [1,%d]", x.shape(), w.shape(), x.cols)
	}
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	f.be.ColScale(out.buf, x.buf, w.buf, n, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.ColScale(dx, d, w.buf, n, c, acc) })
		f.give(w, func(dw ops.Buffer, acc bool) { f.be.ColDot(dw, d, x.buf, n, c, acc) })
	}, x, w)
}

// scaleRows multiplies the rows of x [n,c] by the equal numbers w [n]. It takes several rows for one, because short
// rows cost more than their elements.
func (f *Fwd) scaleRows(out, x, w ops.Buffer, n, c int, acc bool) {
	const together = 64
	whole := n / together
	at := whole * together
	f.be.RowScale(out.Slice(0, at*c), x.Slice(0, at*c), w.Slice(0, whole), whole, together*c, acc)
	f.be.RowScale(out.Slice(at*c, n*c), x.Slice(at*c, n*c), w.Slice(at, n), n-at, c, acc)
}

// ScaleBy is s·x with a tensor s [1,1]. The rows keep x's space.
func (f *Fwd) ScaleBy(x, s *Tensor) *Tensor {
	f.use("ScaleBy", x, s)
	if s.rows != 1 || s.cols != 1 {
		fail("ScaleBy", "s is %s: it must be [1,1]", s.shape())
	}
	n, c := x.rows, x.cols
	rows := f.mem.get(n).buf(n)
	f.be.Spread(rows, s.buf, false)
	out := f.result(n, c, x.sp)
	f.scaleRows(out.buf, x.buf, rows, n, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.scaleRows(dx, d, rows, n, c, acc) })
		f.give(s, func(ds ops.Buffer, acc bool) {
			dots := f.mem.get(n)
			f.be.RowDot(dots.buf(n), d, x.buf, n, c, false)
			f.be.Sum(ds, dots.buf(n), acc)
			f.mem.put(dots)
		})
	}, x, s)
}
