package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// LayerNorm is RowNorm(x)·weight + bias: x [N,F], weight and bias [1,F]. The rows keep x's space.
// It makes one pass over memory instead of three, with the same bits as the separate operations.
func (f *Fwd) LayerNorm(x, weight, bias *Tensor, eps float64) *Tensor {
	return f.layerNorm("LayerNorm", x, weight, bias, eps, nil)
}

// LayerNormReLU is Dropout(ReLU(LayerNorm(x, weight, bias, eps)), p) in one pass, with the same
// bits as the separate operations; with p = 0 Dropout is not called. It stores one bit per element
// for the gradient of ReLU and Dropout.
func (f *Fwd) LayerNormReLU(x, weight, bias *Tensor, eps, p float64) *Tensor {
	const op = "LayerNormReLU"
	f.checkNorm(op, x, weight, bias)
	return f.layerNorm(op, x, weight, bias, eps, f.thenReLU(x, p))
}

// thenReLU is ReLU and, unless p is 0, dropout with probability p of rows like x's.
func (f *Fwd) thenReLU(x *Tensor, p float64) *ops.Epilogue {
	then := &ops.Epilogue{ReLU: true}
	if p != 0 {
		if k, drops := f.dropoutKey(x, p); drops {
			then.Drop = &k
		}
	}
	return then
}

func (f *Fwd) checkNorm(op string, x, weight, bias *Tensor) {
	f.use(op, x, weight, bias)
	for _, row := range []*Tensor{weight, bias} {
		if row.rows != 1 || row.cols != x.cols {
			fail(op, "x is %s, the weight %s and the bias %s: weight and bias must be [1,%d]", x.shape(), weight.shape(), bias.shape(), x.cols)
		}
	}
}

// layerNorm is LayerNorm followed by the given operations; nil: none.
func (f *Fwd) layerNorm(op string, x, weight, bias *Tensor, eps float64, then *ops.Epilogue) *Tensor {
	f.checkNorm(op, x, weight, bias)
	e := ops.Epilogue{}
	if then != nil {
		e = *then
	}
	be, ok := f.be.(ops.Normer)
	if !ok {
		return f.layerNormInSteps(x, weight, bias, eps, e)
	}
	n, c := x.rows, x.cols
	out := f.result(n, c, x.sp)
	need := f.Recording() && (x.need || weight.need || bias.need)
	var y, inv ops.Buffer
	if need {
		y, inv = f.mem.get(n*c).buf(n*c), f.mem.get(n).buf(n)
		if e.Masks() {
			words := ops.MaskWords(n, c)
			e.Keep = f.mem.get(words).buf(words)
		}
	}
	e.Bias = bias.buf
	be.LayerNorm(out.buf, y, inv, x.buf, n, c, float32(eps), weight.buf, e)
	return f.record(out, func(d ops.Buffer) {
		f.normGrads(x, weight, bias, func(g ops.NormGrads) { be.LayerNormGrad(d, y, inv, n, c, weight.buf, e, g) })
	}, x, weight, bias)
}

// layerNormInSteps is layerNorm by separate operations.
func (f *Fwd) layerNormInSteps(x, weight, bias *Tensor, eps float64, e ops.Epilogue) *Tensor {
	y := f.AddRow(f.MulCols(f.RowNorm(x, eps), weight), bias)
	if e.ReLU {
		y = f.ReLU(y)
	}
	if e.Drop == nil {
		return y
	}
	return f.drop(y, *e.Drop)
}
