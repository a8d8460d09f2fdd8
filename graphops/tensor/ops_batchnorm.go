package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// BatchNorm is, column by column of x [N,F], (x - mean) / √(variance + eps) · weight + bias, with the mean and the variance (the mean
// of the squared distances) of the column over all rows. Weight and bias are [1,F]. It also returns the mean and the variance, [1,F]
// each and without gradients; with no rows they are 0. The rows keep their space, but each depends on all others. Sums run over chunks
// of rows in a fixed tree.
func (f *Fwd) BatchNorm(x, weight, bias *Tensor, eps float64) (out, mean, variance *Tensor) {
	return f.batchNorm("BatchNorm", x, weight, bias, eps, nil)
}

// BatchNormReLU is Dropout(ReLU(BatchNorm(x, weight, bias, eps)), p) in one pass, with the same bits as the separate operations; with
// p = 0 Dropout is not called. It stores one bit per element for the gradient of ReLU and Dropout.
func (f *Fwd) BatchNormReLU(x, weight, bias *Tensor, eps, p float64) (out, mean, variance *Tensor) {
	const op = "BatchNormReLU"
	f.checkNorm(op, x, weight, bias)
	return f.batchNorm(op, x, weight, bias, eps, f.thenReLU(x, p))
}

// NormBy is BatchNorm with a given mean and variance, [1,F] each and without gradients. Batch norm uses it in evaluation. A row depends
// on no other.
func (f *Fwd) NormBy(x, mean, variance, weight, bias *Tensor, eps float64) *Tensor {
	return f.normBy("NormBy", x, mean, variance, weight, bias, eps, nil)
}

// NormByReLU is Dropout(ReLU(NormBy(x, mean, variance, weight, bias, eps)), p), as [Fwd.BatchNormReLU].
func (f *Fwd) NormByReLU(x, mean, variance, weight, bias *Tensor, eps, p float64) *Tensor {
	const op = "NormByReLU"
	f.checkNorm(op, x, weight, bias)
	return f.normBy(op, x, mean, variance, weight, bias, eps, f.thenReLU(x, p))
}

func (f *Fwd) batchNorm(op string, x, weight, bias *Tensor, eps float64, then *ops.Epilogue) (out, mean, variance *Tensor) {
	f.checkNorm(op, x, weight, bias)
	c := x.cols
	mean, variance = f.result(1, c, nil), f.result(1, c, nil)
	minus, inv := f.mem.get(c).buf(c), f.mem.get(c).buf(c)
	be, ok := f.be.(ops.Normer)
	if !ok {
		f.colStatsInSteps(mean.buf, variance.buf, minus, inv, x, eps)
		return f.colNormInSteps(x, minus, inv, weight, bias, false, then), mean, variance
	}
	be.ColStats(mean.buf, variance.buf, minus, inv, x.buf, x.rows, c, eps)
	return f.colNorm(be, x, minus, inv, weight, bias, false, then), mean, variance
}

func (f *Fwd) normBy(op string, x, mean, variance, weight, bias *Tensor, eps float64, then *ops.Epilogue) *Tensor {
	f.checkNorm(op, x, weight, bias)
	f.use(op, mean, variance)
	c := x.cols
	for _, s := range []*Tensor{mean, variance} {
		if s.rows != 1 || s.cols != c {
			fail(op, "x is %s and a statistic is %s: the statistic must be [1,%d]", x.shape(), s.shape(), c)
		}
	}
	minus, inv := f.mem.get(c).buf(c), f.mem.get(c).buf(c)
	same := f.mem.get(c) // the statistics again
	f.be.ColMeans(same.buf(c), minus, mean.buf, 1)
	f.be.ColInverses(same.buf(c), inv, variance.buf, 1, eps)
	f.mem.put(same)
	if be, ok := f.be.(ops.Normer); ok {
		return f.colNorm(be, x, minus, inv, weight, bias, true, then)
	}
	return f.colNormInSteps(x, minus, inv, weight, bias, true, then)
}

// colNorm is (x + minus)·inv·weight + bias followed by the given operations. With given, minus and inv do not depend on x.
func (f *Fwd) colNorm(be ops.Normer, x *Tensor, minus, inv ops.Buffer, weight, bias *Tensor, given bool, then *ops.Epilogue) *Tensor {
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	e := ops.Epilogue{}
	if then != nil {
		e = *then
	}
	if e.Masks() && f.Recording() && (x.need || weight.need || bias.need) {
		words := ops.MaskWords(n, c)
		e.Keep = f.mem.get(words).buf(words)
	}
	e.Bias = bias.buf
	be.ColNorm(out.buf, x.buf, minus, inv, weight.buf, n, c, e)
	return f.record(out, func(d ops.Buffer) {
		f.normGrads(x, weight, bias, func(g ops.NormGrads) {
			be.ColNormGrad(d, x.buf, minus, inv, weight.buf, n, c, e, given, g)
		})
	}, x, weight, bias)
}

// normGrads computes the gradients of a norm's input, weight and bias that are needed.
func (f *Fwd) normGrads(x, weight, bias *Tensor, compute func(g ops.NormGrads)) {
	var g ops.NormGrads
	if bias.need {
		g.DB, g.AccB = f.gradOf(bias)
	}
	if weight.need {
		g.DW, g.AccW = f.gradOf(weight)
	}
	if x.need {
		g.DX, g.AccX = f.gradOf(x)
	}
	compute(g)
	for _, t := range []*Tensor{bias, weight, x} {
		if t.need {
			f.flush(t)
		}
	}
}

// colStatsInSteps is [ops.Normer.ColStats] by separate operations.
func (f *Fwd) colStatsInSteps(mean, variance, minus, inv ops.Buffer, x *Tensor, eps float64) {
	n, c := x.rows, x.cols
	by := max(n, 1)
	sum, centred := f.mem.get(c), f.mem.get(n*c)
	s, d := sum.buf(c), centred.buf(n*c)
	f.be.ColSum(s, x.buf, n, c, false)
	f.be.ColMeans(mean, minus, s, by)
	f.be.AddRow(d, minus, n, c, false)
	f.be.Unary(ops.ScaleOp, d, x.buf, 1, true)
	f.be.ColDot(s, d, d, n, c, false)
	f.be.ColInverses(variance, inv, s, by, eps)
	f.mem.put(centred)
	f.mem.put(sum)
}

// colNormInSteps is colNorm by separate operations.
func (f *Fwd) colNormInSteps(x *Tensor, minus, inv ops.Buffer, weight, bias *Tensor, given bool, then *ops.Epilogue) *Tensor {
	n, c := x.rows, x.cols
	y := f.mem.get(n * c).buf(n * c) // for the gradient
	centred := f.mem.get(n * c)
	d := centred.buf(n * c)
	f.be.AddRow(d, minus, n, c, false)
	f.be.Unary(ops.ScaleOp, d, x.buf, 1, true)
	f.be.ColScale(y, d, inv, n, c, false)
	f.mem.put(centred)
	scaled := f.result(n, c, x.sp)
	f.be.ColScale(scaled.buf, y, weight.buf, n, c, false)
	scaled = f.record(scaled, func(d ops.Buffer) {
		f.give(weight, func(dw ops.Buffer, acc bool) { f.be.ColDot(dw, d, y, n, c, acc) })
		f.give(x, func(dx ops.Buffer, acc bool) { f.colNormGradInSteps(dx, d, y, inv, weight.buf, n, c, given, acc) })
	}, x, weight)
	out := f.AddRow(scaled, bias)
	if then == nil {
		return out
	}
	if out = f.ReLU(out); then.Drop != nil {
		out = f.drop(out, *then.Drop)
	}
	return out
}

// colNormGradInSteps is dx = (d - mean(d) - y·mean(d·y))·(inv·w), means over rows, or with given d·(inv·w).
func (f *Fwd) colNormGradInSteps(dx, d, y, inv, w ops.Buffer, n, c int, given, acc bool) {
	factor := f.mem.get(c)
	scale := factor.buf(c)
	f.be.Binary(ops.MulOp, scale, inv, w, false)
	if given {
		f.be.ColScale(dx, d, scale, n, c, acc)
		f.mem.put(factor)
		return
	}
	sums, shares, part := f.mem.get(c), f.mem.get(c), f.mem.get(n*c)
	s, share, p := sums.buf(c), shares.buf(c), part.buf(n*c)
	by := -1 / float32(max(n, 1))
	f.be.ColDot(s, d, y, n, c, false)
	f.be.Unary(ops.ScaleOp, share, s, by, false)
	f.be.ColScale(p, y, share, n, c, false)
	f.be.ColSum(s, d, n, c, false)
	f.be.Unary(ops.ScaleOp, share, s, by, false)
	f.be.AddRow(p, share, n, c, true)
	f.be.Unary(ops.ScaleOp, p, d, 1, true)
	f.be.ColScale(dx, p, scale, n, c, acc)
	for _, m := range []*slab{part, shares, sums, factor} {
		f.mem.put(m)
	}
}
