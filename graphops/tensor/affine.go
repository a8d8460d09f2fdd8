package tensor

// An affine tensor is one whose elements are not computed yet:
//
//	drop(relu(Σ_t x_t·w_t + bias))
//
// Linear and MatMul create one; Add joins two, AddRow sets its bias, ReLU and Dropout close it. Any
// other operation, and Data, makes the backend compute it, in one pass over its memory instead of
// one pass per operation. Inputs do not change during a pass, so the time of the computation does
// not change the result. A tensor that is part of a larger affine tensor and is also used alone is
// computed twice, with the same result.
type affine struct {
	terms []term
	bias  *Tensor
	relu  bool
	drop  *DropoutKey
}

// term is x·w, or x·wᵀ with t and w [out,in].
type term struct {
	x, w *Tensor
	t    bool
}

// Product is one product in the sum of an [Epilogue]: X [m,K] times W, which is [K,n] or, with T,
// [n,K] and transposed.
type Product struct {
	X, W Buffer
	K    int
	T    bool
}

// Epilogue is applied to a sum of products, element by element: the bias [n] (no elements: none) is
// added to each row, ReLU sets negative elements to 0, and Drop, if not nil, is the dropout mask.
// If Keep [MaskWords] has elements, it receives one bit per element, set if the element is neither
// negative nor dropped.
type Epilogue struct {
	Bias Buffer
	ReLU bool
	Drop *DropoutKey
	Keep Buffer
}

// masks reports whether elements can become 0.
func (e *Epilogue) masks() bool { return e.ReLU || e.Drop != nil }

// Scale is the factor by which kept elements are multiplied.
func (e *Epilogue) Scale() float32 {
	if e.Drop == nil {
		return 1
	}
	return e.Drop.Scale
}

// ProductGrad says where to write the gradients of a [Product], if they are needed: DX [m,K] and
// DW, of W's shape. With Acc they are added.
type ProductGrad struct {
	DX, DW       Buffer
	WantX, WantW bool
	AccX, AccW   bool
}

// lazy makes an affine tensor of n rows and cols columns.
func (f *Fwd) lazy(rows, cols int, sp *Space, a *affine) *Tensor {
	t := &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, sp: sp, affine: a}
	if f.Recording() {
		t.need = a.bias != nil && a.bias.need
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

// compute computes the elements of an affine tensor.
func (f *Fwd) compute(t *Tensor) {
	n := t.rows * t.cols
	f.computeIn(t, f.mem.get(n).buf(n))
}

// computeIn is compute in given memory.
func (f *Fwd) computeIn(t *Tensor, mem Buffer) {
	a := t.affine
	t.affine = nil
	m, n := t.rows, t.cols
	t.buf = mem
	e := Epilogue{ReLU: a.relu, Drop: a.drop}
	if a.bias != nil {
		e.Bias = a.bias.buf
	}
	if t.need && e.masks() {
		words := MaskWords(m, n)
		e.Keep = f.mem.get(words).buf(words)
	}
	products := make([]Product, len(a.terms))
	for i, p := range a.terms {
		products[i] = Product{X: p.x.buf, W: p.w.buf, K: p.x.cols, T: p.t}
	}
	f.be.Affine(t.buf, m, n, products, e)
	if !t.need {
		return
	}
	f.tape = append(f.tape, node{t, func(d Buffer) { f.affineBack(d, m, n, a, products, e) }})
}

func (f *Fwd) affineBack(d Buffer, m, n int, a *affine, products []Product, e Epilogue) {
	grads := make([]ProductGrad, len(a.terms))
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
	var db Buffer
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
