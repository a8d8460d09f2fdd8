package tensor

import "github.com/graphnb/graphnb/graphops/ops"

// Custom is a user-defined operation: out [rows,cols] from any inputs, with its own gradient.
//
// forward fills out, which is row-major and initially zero; it reads its inputs with Data. backward
// receives dOut [rows,cols] and, for each input, memory for its gradient, row-major and initially
// zero, or nil if the input needs no gradient. Both run on the caller's goroutine, in host memory.
// backward may be nil if no input needs a gradient. Neither may keep the slices.
//
// The result has no row space; if its rows belong to nodes, set it with [Tensor.SetSpace].
func (f *Fwd) Custom(name string, inputs []*Tensor, rows, cols int, forward func(out []float32), backward func(dOut []float32, dIn [][]float32)) *Tensor {
	return f.custom(name, inputs, rows, cols, true, forward, backward)
}

// CustomSet is Custom, but forward and backward find any content in the memory that they fill, and set every element.
func (f *Fwd) CustomSet(name string, inputs []*Tensor, rows, cols int, forward func(out []float32), backward func(dOut []float32, dIn [][]float32)) *Tensor {
	return f.custom(name, inputs, rows, cols, false, forward, backward)
}

func (f *Fwd) custom(name string, inputs []*Tensor, rows, cols int, zero bool, forward func(out []float32), backward func(dOut []float32, dIn [][]float32)) *Tensor {
	f.use(name, inputs...)
	if rows < 0 || cols < 0 {
		fail(name, "its result cannot be [%d,%d]", rows, cols)
	}
	inputs = append([]*Tensor(nil), inputs...)
	out := f.result(rows, cols, nil)
	if out.buf.Dev == nil {
		if zero {
			clear(out.buf.Host)
		}
		forward(out.buf.Host)
	} else {
		host := make([]float32, rows*cols)
		forward(host)
		f.be.Upload(out.buf, host)
	}
	f.record(out, func(d ops.Buffer) { f.customBack(inputs, zero, f.host(d), backward) }, inputs...)
	if out.need && backward == nil {
		fail(name, "an input needs a gradient but the operation has no backward function")
	}
	return out
}

// customBack gives backward memory for each input, zeroed if it may set or add: that of the input's gradient, if
// it has none yet, or memory that is added to the gradient.
func (f *Fwd) customBack(inputs []*Tensor, zero bool, dOut []float32, backward func(dOut []float32, dIn [][]float32)) {
	dIn := make([][]float32, len(inputs))
	into := make([]ops.Buffer, len(inputs))
	lent := make([]*slab, len(inputs))
	for i, x := range inputs {
		if !x.need {
			continue
		}
		n := x.rows * x.cols
		fresh := x.grad == nil && x.param == nil
		if fresh {
			var acc bool
			into[i], acc = f.gradOf(x)
			fresh = !acc
		}
		if !fresh {
			lent[i] = f.mem.get(n)
			into[i] = lent[i].buf(n)
		}
		if b := into[i]; b.Dev == nil {
			if zero {
				clear(b.Host)
			}
			dIn[i] = b.Host
			if dIn[i] == nil {
				dIn[i] = []float32{}
			}
		} else {
			dIn[i] = make([]float32, n)
		}
	}
	backward(dOut, dIn)
	for i, x := range inputs {
		b := into[i]
		if b.Dev != nil {
			f.be.Upload(b, dIn[i])
		}
		if lent[i] != nil {
			f.give(x, func(dx ops.Buffer, acc bool) { f.be.Unary(ops.ScaleOp, dx, b, 1, acc) })
			f.mem.put(lent[i])
		}
	}
}
