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
// With jumping knowledge (ModelConfig.JK) its output is that of all layers.
//
// Its parameters are norms.0.…, norms.1.…, as in PyG's models, and res.0.weight, … if a residual
// needs a change of width, and jk.lstm.…, jk.att.… and lin.weight, lin.bias with jumping knowledge.
type Between struct {
	Norms []Module     `nn:"norms,optional"` // nil, or one fewer than layers, with jumping knowledge one per layer
	Res   []*Linear    `nn:"res,optional"`   // nil, or one per layer, nil if the widths agree
	JK    *JumpingLSTM `nn:"jk,optional"`    // nil but for the jumping knowledge lstm
	Lin   *Linear      `nn:"lin,optional"`   // nil without jumping knowledge

	Dropout      float64
	InputDropout float64
	Residual     bool
	Activation   string // "" and "relu", or "elu"
	Jump         string // "" or the jumping knowledge: "cat", "max" or "lstm"

	hidden int
}

// NewBetween returns the Between that s describes. It panics with a [*tensor.Error] if s is
// invalid.
func NewBetween(s ModelConfig) Between {
	s.check("NewBetween")
	if s.FeedForward {
		fail("NewBetween", "ModelConfig.FeedForward is set, but this model has no feed-forward parts; take a GINE, GatedGCN or PNA, or leave it out")
	}
	m := Between{
		Norms: newNorms(s.Norm, s.Layers-1, s.Hidden), Dropout: s.Dropout, InputDropout: s.InputDropout,
		Residual: s.Residual, Activation: s.Activation, Jump: s.JK, hidden: s.Hidden,
	}
	if s.JK != "" {
		wide := s.Hidden
		m.Norms = newNorms(s.Norm, s.Layers, s.Hidden)
		switch s.JK {
		case "cat":
			wide *= s.Layers
		case "lstm":
			m.JK = NewJumpingLSTM(s.Hidden, s.Layers)
		}
		m.Lin = NewLinear(wide, s.Out, true)
	}
	if s.Residual {
		m.Res = Stack(s.Inner(), func(in, out int) *Linear {
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
	all := h
	if m.Jump != "" && i > 0 {
		if h.Cols() != i*m.hidden {
			fail("Between", "layer %d got rows of %d columns; with jumping knowledge they are the outputs of the layers before, %d", i, h.Cols(), i*m.hidden)
		}
		h = f.Cols(h, (i-1)*m.hidden, i*m.hidden)
	}
	y := layer(f, b, h)
	if m.Residual {
		var lin *Linear
		if i < len(m.Res) {
			lin = m.Res[i]
		}
		y = Residual(f, b, h, y, lin)
	}
	if m.Jump == "" {
		if i == layers-1 {
			return y
		}
		return m.after(f, i, y)
	}
	if y = m.after(f, i, y); i > 0 {
		all = f.Dst(b, all)
	}
	return m.jump(f, i, layers, all, y)
}

// after is what follows the layer i: normalisation, activation and dropout.
func (m *Between) after(f *Fwd, i int, y *Tensor) *Tensor {
	if m.Norms != nil {
		if norm, ok := m.Norms[i].(*LayerNorm); ok && m.Activation != "elu" {
			return f.LayerNormReLU(y, f.Param(norm.Weight), f.Param(norm.Bias), norm.Eps, m.Dropout)
		}
		y = m.Norms[i].Forward(f, y)
	}
	y = m.activate(f, y)
	if m.Dropout > 0 {
		y = f.Dropout(y, m.Dropout)
	}
	return y
}

func (m *Between) activate(f *Fwd, y *Tensor) *Tensor {
	if m.Activation == "elu" {
		return f.ELU(y)
	}
	return f.ReLU(y)
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
