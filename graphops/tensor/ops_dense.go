package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// MatMul is a·b: a [M,K], b [K,N], out [M,N]. The rows keep a's space.
//
// Gradients: da = dOut·bᵀ, db = aᵀ·dOut; the long sum over M in db is cut into chunks by M alone
// and combined in a fixed tree. Cost 2·M·N·K flops, and the same for each gradient. With a sparse a
// (see [Fwd.SparseInput]) the cost is 2·N flops for each of its non-zeros, and the sums of db run
// over ascending rows.
func (f *Fwd) MatMul(a, b *Tensor) *Tensor {
	f.check("MatMul", a, b)
	f.dense(b)
	if a.cols != b.rows {
		fail("MatMul", "a is %s and b is %s: a's columns must be b's rows", a.shape(), b.shape())
	}
	n := b.cols
	s := a.sparse
	if s == nil {
		f.dense(a)
		return f.lazy(a.rows, n, a.sp, &affine{terms: []term{{x: a, w: b}}})
	}
	out := f.result(a.rows, n, a.sp)
	f.sparseProduct(out.buf, a, b.buf, n, false, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(b, func(db ops.Buffer, acc bool) { f.sparseGrad(db, a, s, d, n, false, acc) })
	}, b)
}

// Linear is x·wᵀ + bias: x [N,In], w [Out,In] as in PyTorch, bias [1,Out] (or [Out,1]) or nil, out
// [N,Out]. The rows keep x's space.
//
// Gradients: dx = dOut·w, dw = dOutᵀ·x, dbias = Σ_rows dOut, with the sums over N in fixed chunks
// and a fixed tree. Cost 2·N·In·Out flops, and the same for each of dx and dw; a sparse x is as in
// MatMul.
func (f *Fwd) Linear(x, w, bias *Tensor) *Tensor {
	f.check("Linear", x, w)
	f.dense(w)
	if x.cols != w.cols {
		fail("Linear", "x is %s and the weight is %s [out,in]: x must have %d columns", x.shape(), w.shape(), w.cols)
	}
	n, o := x.rows, w.rows
	inputs := []*Tensor{x, w}
	if bias != nil {
		f.use("Linear", bias)
		if bias.rows*bias.cols != o || min(bias.rows, bias.cols) > 1 {
			fail("Linear", "the bias is %s and the weight is %s [out,in]: the bias must be [1,%d]", bias.shape(), w.shape(), o)
		}
		inputs = append(inputs, bias)
	}
	s := x.sparse
	if s == nil {
		f.dense(x)
		return f.lazy(n, o, x.sp, &affine{terms: []term{{x: x, w: w, t: true}}, bias: bias})
	}
	out := f.result(n, o, x.sp)
	if bias != nil {
		f.be.AddRow(out.buf, bias.buf, n, o, false)
	}
	f.sparseProduct(out.buf, x, w.buf, o, true, bias != nil)
	return f.record(out, func(d ops.Buffer) {
		f.give(w, func(dw ops.Buffer, acc bool) { f.sparseGrad(dw, x, s, d, o, true, acc) })
		if bias != nil {
			f.give(bias, func(db ops.Buffer, acc bool) { f.be.ColSum(db, d, n, o, acc) })
		}
	}, inputs...)
}

// AddRow is x[r,:] + row for every r: x [N,F], row [1,F]. The rows keep x's
// space.
func (f *Fwd) AddRow(x, row *Tensor) *Tensor {
	f.check("AddRow", x)
	f.use("AddRow", row)
	if row.rows != 1 || row.cols != x.cols {
		fail("AddRow", "x is %s and the row is %s: the row must be [1,%d]", x.shape(), row.shape(), x.cols)
	}
	if a := x.open(); a != nil && a.bias == nil {
		return f.lazy(x.rows, x.cols, x.sp, &affine{base: a.base, terms: a.terms, bias: row})
	}
	f.dense(x)
	out := f.result(x.rows, x.cols, x.sp)
	f.be.AddRow(out.buf, row.buf, x.rows, x.cols, false)
	f.be.Unary(ops.ScaleOp, out.buf, x.buf, 1, true)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dx, d, 1, acc) })
		f.give(row, func(dr ops.Buffer, acc bool) { f.be.ColSum(dr, d, x.rows, x.cols, acc) })
	}, x, row)
}

// SumAll is the sum of all elements, [1,1]: over chunks in float64, combined in
// a fixed tree, rounded once. The sum of no elements is 0.
func (f *Fwd) SumAll(x *Tensor) *Tensor {
	f.use("SumAll", x)
	out := f.result(1, 1, nil)
	f.be.Sum(out.buf, x.buf, false)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.Spread(dx, d, acc) })
	}, x)
}
