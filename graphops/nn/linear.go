package nn

import "math"

var (
	_ Module   = (*Linear)(nil)
	_ Resetter = (*Linear)(nil)
)

// Linear is y = x·Wᵀ + b, row by row: x [N, in], W [out, in], b [out], y [N, out].
//
// Its parameters are named weight and bias and initialised from U(±1/√in), as in torch.nn.Linear.
type Linear struct {
	Weight *Param `nn:"weight"`
	Bias   *Param `nn:"bias,vector,optional"` // nil: none
}

// NewLinear returns a Linear from in to out columns.
func NewLinear(in, out int, bias bool) *Linear {
	l := &Linear{Weight: NewParam(out, in)}
	if bias {
		l.Bias = NewParam(1, out)
	}
	return l
}

// Forward returns y [N, out] for x [N, in]. It keeps x's row space.
func (l *Linear) Forward(f *Fwd, x *Tensor) *Tensor {
	if l == nil {
		fail("Linear", "the layer is nil; create it with NewLinear")
	}
	var bias *Tensor
	if l.Bias != nil {
		bias = f.Param(l.Bias)
	}
	return f.Linear(x, f.Param(l.Weight), bias)
}

// Product is x·Wᵀ, without the bias.
func (l *Linear) Product(f *Fwd, x *Tensor) *Tensor {
	if l == nil {
		fail("Linear", "the layer is nil; create it with NewLinear")
	}
	return f.Linear(x, f.Param(l.Weight), nil)
}

// Reset initialises the parameters; [Params.Init] calls it.
func (l *Linear) Reset(init func(p *Param, bound float64)) {
	bound := 1 / math.Sqrt(float64(max(l.Weight.Cols, 1)))
	init(l.Weight, bound)
	init(l.Bias, bound)
}
