package nn

// Between is the part of a model between its layers, shared by all models in this package: dropout
// before the first layer; then, after each layer but the last, a normalisation, an activation and
// dropout; and a residual connection around each layer. Embed it in a custom model:
//
//	type net struct {
//		Convs []*nn.SAGEConv `nn:"convs"`
//		nn.Between
//	}
//
// Its parameters are norms.0.…, norms.1.…, as in PyG's models, and res.0.weight, … if a residual
// needs a change of width.
type Between struct {
	Norms []Module  `nn:"norms,optional"` // nil, or one fewer than layers
	Res   []*Linear `nn:"res,optional"`   // nil, or one per layer, nil if the widths agree

	Dropout      float64
	InputDropout float64
	Residual     bool
	Activation   string // "" and "relu", or "elu"
}

// NewBetween returns the Between that s describes. It panics with a [*tensor.Error] if s is
// invalid.
func NewBetween(s ModelConfig) Between {
	s.check("NewBetween")
	m := Between{
		Norms: newNorms(s.Norm, s.Layers-1, s.Hidden), Dropout: s.Dropout, InputDropout: s.InputDropout,
		Residual: s.Residual, Activation: s.Activation,
	}
	if s.Residual {
		m.Res = Stack(s, func(in, out int) *Linear {
			if in == out {
				return nil
			}
			return NewLinear(in, out, false)
		})
	}
	return m
}

func newNorms(norm string, n, cols int) []Module {
	var norms []Module
	for range n {
		switch norm {
		case "layer":
			norms = append(norms, NewLayerNorm(cols))
		case "batch":
			norms = append(norms, NewBatchNorm(cols))
		}
	}
	return norms
}

// Around runs layer i of layers, with the operations before and after it.
func (m *Between) Around(f *Fwd, i, layers int, b *Block, h *Tensor, layer func(f *Fwd, b *Block, h *Tensor) *Tensor) *Tensor {
	if i == 0 && m.InputDropout > 0 {
		h = f.Dropout(h, m.InputDropout)
	}
	y := layer(f, b, h)
	if m.Residual {
		var lin *Linear
		if i < len(m.Res) {
			lin = m.Res[i]
		}
		y = Residual(f, b, h, y, lin)
	}
	if i == layers-1 {
		return y
	}
	if m.Norms != nil {
		if norm, ok := m.Norms[i].(*LayerNorm); ok && m.Activation != "elu" {
			return f.LayerNormReLU(y, f.Param(norm.Weight), f.Param(norm.Bias), norm.Eps, m.Dropout)
		}
		y = m.Norms[i].Forward(f, y)
	}
	if m.Activation == "elu" {
		y = f.ELU(y)
	} else {
		y = f.ReLU(y)
	}
	if m.Dropout > 0 {
		y = f.Dropout(y, m.Dropout)
	}
	return y
}

// Residual is y + lin(h), for a layer's input h [NumSrc, in] at its destinations and its output y
// [NumDst, out]; if in = out, lin is nil and the rows are added unchanged.
func Residual(f *Fwd, b *Block, h, y *Tensor, lin *Linear) *Tensor {
	own := f.Dst(b, h)
	if lin != nil {
		own = lin.Forward(f, own)
	}
	return f.Add(y, own)
}
