package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// An affine tensor is one whose elements are not computed yet:
//
//	drop(relu(base + Σ_t x_t·w_t + bias))
//
// Linear and MatMul create one; Add joins two, AddProducts sets its base, AddRow its bias, ReLU and Dropout close it. Any
// other operation, and Data, makes the backend compute it, in one pass over its memory instead of
// one pass per operation. Inputs do not change during a pass, so the time of the computation does
// not change the result. A tensor that is part of a larger affine tensor and is also used alone is
// computed twice, with the same result.
type affine struct {
	base  *Tensor // nil: none
	terms []term
	bias  *Tensor
	relu  bool
	drop  *ops.DropoutKey
	into  func() ops.Buffer // the memory to compute it in; nil: the pass's
}

// term is x·w, or x·wᵀ with t and w [out,in].
type term struct {
	x, w *Tensor
	t    bool
}

// lazy makes an affine tensor of n rows and cols columns.
func (f *Fwd) lazy(rows, cols int, sp *ops.Space, a *affine) *Tensor {
	t := &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, sp: sp, affine: a}
	if f.Recording() {
		t.need = a.bias != nil && a.bias.need || a.base != nil && a.base.need
		for _, p := range a.terms {
			t.need = t.need || p.x.need || p.w.need
		}
	}
	return t
}

// open returns the affine form of a tensor that can still take terms and a bias, or nil.
func (t *Tensor) open() *affine {
	if a := t.affine; a != nil && !a.relu && a.drop == nil {
		return a
	}
	return nil
}

// AddProducts is base + y, elementwise; the shapes are equal. If y is a product whose elements nothing has needed yet,
// or a sum of such, it is added to the rows of base while they are in a core's cache, and the operations that follow
// are computed with it: this changes only the rounding. Otherwise it is Add.
func (f *Fwd) AddProducts(base, y *Tensor) *Tensor {
	f.check("AddProducts", base, y)
	a := y.open()
	if a == nil || a.base != nil || base.rows != y.rows || base.cols != y.cols {
		return f.Add(base, y)
	}
	f.dense(base)
	return f.lazy(y.rows, y.cols, join(base, y), &affine{base: base, terms: a.terms, bias: a.bias})
}

// compute computes the elements of an affine tensor.
func (f *Fwd) compute(t *Tensor) {
	if into := t.affine.into; into != nil {
		f.computeIn(t, into())
		return
	}
	n := t.rows * t.cols
	f.computeIn(t, f.mem.get(n).buf(n))
}

// computeIn is compute in given memory.
func (f *Fwd) computeIn(t *Tensor, mem ops.Buffer) {
	a := t.affine
	t.affine = nil
	m, n := t.rows, t.cols
	t.buf = mem
	e := ops.Epilogue{ReLU: a.relu, Drop: a.drop}
	if a.bias != nil {
		e.Bias = a.bias.buf
	}
	if a.base != nil {
		e.Base = a.base.buf
	}
	if t.need && e.Masks() {
		words := ops.MaskWords(m, n)
		e.Keep = f.mem.get(words).buf(words)
	}
	products := make([]ops.Product, len(a.terms))
	for i, p := range a.terms {
		products[i] = ops.Product{X: p.x.buf, W: p.w.buf, K: p.x.cols, T: p.t}
	}
	f.be.Affine(t.buf, m, n, products, e)
	if !t.need {
		return
	}
	f.tape = append(f.tape, node{t, func(d ops.Buffer) {
		f.affineBack(d, m, n, a, products, e)
		if a.base != nil {
			f.passOn(a.base, t, 0, d)
		}
	}})
}

func (f *Fwd) affineBack(d ops.Buffer, m, n int, a *affine, products []ops.Product, e ops.Epilogue) {
	grads := make([]ops.ProductGrad, len(a.terms))
	for i, p := range a.terms {
		g := &grads[i]
		if p.x.need {
			g.WantX = true
			g.DX, g.AccX = f.gradOf(p.x)
		}
		if p.w.need {
			g.WantW = true
			g.DW, g.AccW = f.gradOf(p.w)
		}
	}
	var db ops.Buffer
	var accB bool
	if a.bias != nil && a.bias.need {
		db, accB = f.gradOf(a.bias)
	}
	f.be.AffineGrad(d, m, n, products, grads, e, db, accB)
	for _, p := range a.terms {
		for _, x := range []*Tensor{p.x, p.w} {
			if x.need {
				f.flush(x)
			}
		}
	}
	if db.N > 0 {
		f.flush(a.bias)
	}
}
