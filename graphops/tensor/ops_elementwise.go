package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// Elementwise operations keep the space of their operands. For two operands, the result has the
// space of both if they agree, the only space if one has none, and no space if they differ.

// Add is a + b, elementwise; the shapes are equal.
func (f *Fwd) Add(a, b *Tensor) *Tensor {
	f.check("Add", a, b)
	if x, y := a.open(), b.open(); x != nil && y != nil && a.rows == b.rows && a.cols == b.cols && (x.bias == nil || y.bias == nil) && (x.base == nil || y.base == nil) {
		sum := &affine{base: x.base, terms: append(x.terms[:len(x.terms):len(x.terms)], y.terms...), bias: x.bias}
		if sum.base == nil {
			sum.base = y.base
		}
		if sum.bias == nil {
			sum.bias = y.bias
		}
		return f.lazy(a.rows, a.cols, join(a, b), sum)
	}
	return f.binary("Add", ops.AddOp, a, b, func(d ops.Buffer) {
		f.give(a, func(da ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, da, d, 1, acc) })
		f.give(b, func(db ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, db, d, 1, acc) })
	})
}

// Sub is a - b, elementwise; the shapes are equal.
func (f *Fwd) Sub(a, b *Tensor) *Tensor {
	return f.binary("Sub", ops.SubOp, a, b, func(d ops.Buffer) {
		f.give(a, func(da ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, da, d, 1, acc) })
		f.give(b, func(db ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, db, d, -1, acc) })
	})
}

// Mul is a·b, elementwise; the shapes are equal.
func (f *Fwd) Mul(a, b *Tensor) *Tensor {
	return f.binary("Mul", ops.MulOp, a, b, func(d ops.Buffer) {
		f.give(a, func(da ops.Buffer, acc bool) { f.be.Binary(ops.MulOp, da, d, b.buf, acc) })
		f.give(b, func(db ops.Buffer, acc bool) { f.be.Binary(ops.MulOp, db, d, a.buf, acc) })
	})
}

func (f *Fwd) binary(name string, op ops.BinaryOp, a, b *Tensor, back func(d ops.Buffer)) *Tensor {
	f.use(name, a, b)
	if a.rows != b.rows || a.cols != b.cols {
		fail(name, "a is %s and b is %s: the shapes must be equal", a.shape(), b.shape())
	}
	out := f.result(a.rows, a.cols, join(a, b))
	f.be.Binary(op, out.buf, a.buf, b.buf, false)
	return f.record(out, back, a, b)
}

// MulRows is w[r]·x[r,:]: x [N,F], w [N,1]. It multiplies messages by one number per edge. The
// result has the space of x and w as in Mul.
func (f *Fwd) MulRows(x, w *Tensor) *Tensor {
	f.use("MulRows", x, w)
	if w.rows != x.rows || w.cols != 1 {
		fail("MulRows", "x is %s and w is %s: w must be [%d,1]", x.shape(), w.shape(), x.rows)
	}
	n, c := x.rows, x.cols
	out := f.result(n, c, join(x, w))
	f.be.RowScale(out.buf, x.buf, w.buf, n, c, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.RowScale(dx, d, w.buf, n, c, acc) })
		f.give(w, func(dw ops.Buffer, acc bool) { f.be.RowDot(dw, d, x.buf, n, c, acc) })
	}, x, w)
}

// Scale is s·x.
func (f *Fwd) Scale(x *Tensor, s float64) *Tensor { return f.unary("Scale", ops.ScaleOp, x, s) }

// ReLU is max(x, 0); its gradient at 0 is 0. NaN stays NaN.
func (f *Fwd) ReLU(x *Tensor) *Tensor {
	f.check("ReLU", x)
	if a := x.open(); a != nil {
		return f.lazy(x.rows, x.cols, x.sp, &affine{base: a.base, terms: a.terms, bias: a.bias, relu: true})
	}
	return f.unary("ReLU", ops.ReLUOp, x, 0)
}

// LeakyReLU is x where x > 0, else slope·x; its gradient at 0 is slope.
func (f *Fwd) LeakyReLU(x *Tensor, slope float64) *Tensor {
	return f.unary("LeakyReLU", ops.LeakyReLUOp, x, slope)
}

// ELU is x where x > 0, else e^x - 1 (Clevert, Unterthiner, Hochreiter 2016,
// arXiv:1511.07289, with α = 1).
func (f *Fwd) ELU(x *Tensor) *Tensor { return f.unary("ELU", ops.ELUOp, x, 1) }

// Sigmoid is 1/(1+e^-x).
func (f *Fwd) Sigmoid(x *Tensor) *Tensor { return f.unary("Sigmoid", ops.SigmoidOp, x, 0) }

// Tanh is the hyperbolic tangent of x.
func (f *Fwd) Tanh(x *Tensor) *Tensor { return f.unary("Tanh", ops.TanhOp, x, 0) }

// Exp is e^x.
func (f *Fwd) Exp(x *Tensor) *Tensor { return f.unary("Exp", ops.ExpOp, x, 0) }

// GELU is x·Φ(x), with the distribution function Φ of the normal distribution within 4e-7 of its value, relative to it.
//
// Source: D. Hendrycks, K. Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415.
func (f *Fwd) GELU(x *Tensor) *Tensor { return f.unary("GELU", ops.GELUOp, x, 0) }

// Sqrt is √x where x > above, else 0, with a gradient of 0. above is at least 0: near 0 the gradient of the root grows without
// limit. NaN stays NaN.
func (f *Fwd) Sqrt(x *Tensor, above float64) *Tensor {
	if !(above >= 0) {
		fail("Sqrt", "the smallest number with a root is given as %v; it must be at least 0", above)
	}
	return f.unary("Sqrt", ops.SqrtOp, x, above)
}

// Reciprocal is 1/(x + eps).
func (f *Fwd) Reciprocal(x *Tensor, eps float64) *Tensor {
	return f.unary("Reciprocal", ops.ReciprocalOp, x, eps)
}

func (f *Fwd) unary(name string, op ops.UnaryOp, x *Tensor, alpha float64) *Tensor {
	f.use(name, x)
	out := f.result(x.rows, x.cols, x.sp)
	a := float32(alpha)
	f.be.Unary(op, out.buf, x.buf, a, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.UnaryGrad(op, dx, d, x.buf, out.buf, a, acc) })
	}, x)
}
