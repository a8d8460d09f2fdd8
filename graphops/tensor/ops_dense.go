package tensor

// MatMul is a·b: a [M,K], b [K,N], out [M,N]. The rows keep a's space.
//
// Gradients: da = dOut·bᵀ, db = aᵀ·dOut; the long sum over M in db is cut into
// chunks by M alone and combined in a fixed tree. Cost 2·M·N·K flops, and as
// much for each gradient. With a sparse a (see [Fwd.SparseInput]) it is 2·N flops
// for each of its non-zeros; the sums of db run over ascending rows.
func (f *Fwd) MatMul(a, b *Tensor) *Tensor {
	f.useSparse("MatMul", a, b)
	f.dense(b)
	if a.cols != b.rows {
		fail("MatMul", "a is %s and b is %s: a's columns must be b's rows", a.shape(), b.shape())
	}
	m, k, n := a.rows, a.cols, b.cols
	out := f.result(m, n, a.sp)
	if s := a.sparse; s != nil {
		f.sparseProduct(out.buf, a, b.buf, n, false, false)
		return f.record(out, func(d Buffer) {
			f.give(b, func(db Buffer, acc bool) { f.sparseGrad(db, a, s, d, n, false, acc) })
		}, b)
	}
	f.be.Gemm(out.buf, false, false, m, n, k, a.buf, b.buf, false)
	return f.record(out, func(d Buffer) {
		f.give(a, func(da Buffer, acc bool) { f.be.Gemm(da, false, true, m, k, n, d, b.buf, acc) })
		f.give(b, func(db Buffer, acc bool) { f.be.Gemm(db, true, false, k, n, m, a.buf, d, acc) })
	}, a, b)
}

// Linear is x·wᵀ + bias: x [N,In], w [Out,In] as in PyTorch, bias [1,Out] (or
// [Out,1]) or nil, out [N,Out]. The rows keep x's space.
//
// Gradients: dx = dOut·w, dw = dOutᵀ·x, dbias = Σ_rows dOut, the sums over N in
// fixed chunks and a fixed tree. Cost 2·N·In·Out flops, and as much for each of
// dx and dw; a sparse x is as in MatMul.
func (f *Fwd) Linear(x, w, bias *Tensor) *Tensor {
	f.useSparse("Linear", x, w)
	f.dense(w)
	if x.cols != w.cols {
		fail("Linear", "x is %s and the weight is %s [out,in]: x must have %d columns", x.shape(), w.shape(), w.cols)
	}
	n, in, o := x.rows, x.cols, w.rows
	inputs := []*Tensor{x, w}
	if bias != nil {
		f.useSparse("Linear", x, w, bias)
		f.dense(bias)
		if bias.rows*bias.cols != o || min(bias.rows, bias.cols) > 1 {
			fail("Linear", "the bias is %s and the weight is %s [out,in]: the bias must be [1,%d]", bias.shape(), w.shape(), o)
		}
		inputs = append(inputs, bias)
	}
	out := f.result(n, o, x.sp)
	if bias != nil {
		f.be.AddRow(out.buf, bias.buf, n, o, false)
	}
	s := x.sparse
	if s != nil {
		f.sparseProduct(out.buf, x, w.buf, o, true, bias != nil)
	} else {
		f.be.Gemm(out.buf, false, true, n, o, in, x.buf, w.buf, bias != nil)
	}
	return f.record(out, func(d Buffer) {
		f.give(x, func(dx Buffer, acc bool) { f.be.Gemm(dx, false, false, n, in, o, d, w.buf, acc) })
		f.give(w, func(dw Buffer, acc bool) {
			if s != nil {
				f.sparseGrad(dw, x, s, d, o, true, acc)
			} else {
				f.be.Gemm(dw, true, false, o, in, n, d, x.buf, acc)
			}
		})
		if bias != nil {
			f.give(bias, func(db Buffer, acc bool) { f.be.ColSum(db, d, n, o, acc) })
		}
	}, inputs...)
}

// AddRow is x[r,:] + row for every r: x [N,F], row [1,F]. The rows keep x's
// space.
func (f *Fwd) AddRow(x, row *Tensor) *Tensor {
	f.use("AddRow", x, row)
	if row.rows != 1 || row.cols != x.cols {
		fail("AddRow", "x is %s and the row is %s: the row must be [1,%d]", x.shape(), row.shape(), x.cols)
	}
	out := f.result(x.rows, x.cols, x.sp)
	f.be.AddRow(out.buf, row.buf, x.rows, x.cols, false)
	f.be.Unary(ScaleOp, out.buf, x.buf, 1, true)
	return f.record(out, func(d Buffer) {
		f.give(x, func(dx Buffer, acc bool) { f.be.Unary(ScaleOp, dx, d, 1, acc) })
		f.give(row, func(dr Buffer, acc bool) { f.be.ColSum(dr, d, x.rows, x.cols, acc) })
	}, x, row)
}

// SumAll is the sum of all elements, [1,1]: over chunks in float64, combined in
// a fixed tree, rounded once. The sum of no elements is 0.
func (f *Fwd) SumAll(x *Tensor) *Tensor {
	f.use("SumAll", x)
	out := f.result(1, 1, nil)
	f.be.Sum(out.buf, x.buf, false)
	return f.record(out, func(d Buffer) {
		f.give(x, func(dx Buffer, acc bool) { f.be.Spread(dx, d, acc) })
	}, x)
}
