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
// In the arrangement "strong" (ModelConfig.Arrangement) every layer has Hidden columns and is followed by the normalisation,
// the activation and the dropout, and a linear layer makes the output of the last one:
//
//	x_{i+1} = dropout(ReLU(norm(layer_i(x_i) + R_i·x_i + r_i))),  y = W·x_L + b
//
// The residual R_i·x_i + r_i is there with ModelConfig.Residual, at each layer, also where the widths agree. With
// ModelConfig.JK "sum" the output is W·(x_1 + … + x_L) + b. Source: Y. Luo, L. Shi, X.-M. Wu, "Classic GNNs are strong
// baselines", NeurIPS 2024, arXiv:2406.08993.
//
// Its parameters are norms.0.…, norms.1.…, as in PyG's models, and res.0.weight, … if a residual
// needs a change of width, and jk.lstm.…, jk.att.… and lin.weight, lin.bias with jumping knowledge. In the arrangement
// "strong" they are norms.0.…, res.0.weight, res.0.bias, … and lin.weight, lin.bias; lin_in.weight and lin_in.bias are a PreLinear's.
type Between struct {
	LinIn *Linear      `nn:"lin_in,optional"` // nil without PreLinear
	Norms []Module     `nn:"norms,optional"`  // nil, or one fewer than layers, with Lin one per layer
	Res   []*Linear    `nn:"res,optional"`    // nil, or one per layer; nil if the widths agree, but in the arrangement strong
	JK    *JumpingLSTM `nn:"jk,optional"`     // nil but for the jumping knowledge lstm
	Lin   *Linear      `nn:"lin,optional"`    // makes the output; nil if the last layer does

	Dropout      float64
	InputDropout float64
	ScaleInput   bool
	Residual     bool
	Activation   string // "" and "relu", or "elu"
	Jump         string // "" or the jumping knowledge: one of [Jumps]

	hidden int
}

// Strong is the arrangement of the strong baselines; see [Between].
const Strong = "strong"

// NewBetween returns the Between that s describes. It panics with a [*tensor.Error] if s is
// invalid.
func NewBetween(s ModelConfig) Between {
	s.check("NewBetween")
	if s.FeedForward {
		fail("NewBetween", "ModelConfig.FeedForward is set, but this model has no feed-forward parts; take a GINE, GatedGCN or PNA, or leave it out")
	}
	m := Between{
		Norms: newNorms(s.Norm, s.Layers-1, s.Hidden), Dropout: s.Dropout, InputDropout: s.InputDropout, ScaleInput: s.ScaleInput,
		Residual: s.Residual, Activation: s.Activation, Jump: s.JK, hidden: s.Hidden,
	}
	if s.PreLinear {
		m.LinIn = NewLinear(s.In, s.Hidden, true)
	}
	if s.headed() {
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
			if in == out && s.Arrangement == "" {
				return nil
			}
			return NewLinear(in, out, s.Arrangement == Strong)
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
	if i == 0 && m.ScaleInput && h.Sparse() {
		h = f.UnitRows(h)
	}
	if i == 0 && m.InputDropout > 0 {
		h = f.Dropout(h, m.InputDropout)
	}
	if i == 0 && m.LinIn != nil {
		if h = m.LinIn.Forward(f, h); m.Dropout > 0 {
			h = f.Dropout(h, m.Dropout)
		}
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
	switch {
	case m.Lin == nil && i == layers-1:
		return y
	case m.Lin == nil:
		return m.after(f, i, y)
	case m.Jump == "" && i == layers-1:
		return m.Lin.Forward(f, m.after(f, i, y))
	case m.Jump == "":
		return m.after(f, i, y)
	}
	if y = m.after(f, i, y); i > 0 {
		all = f.Dst(b, all)
	}
	return m.jump(f, i, layers, all, y)
}

// SourceChunks implements [SourceTransformer] for a model that embeds Between: the first layer transforms all sources if a
// linear layer comes before it.
func (m *Between) SourceChunks(i, _ int) int {
	if i == 0 && m.LinIn != nil {
		return 1
	}
	return 0
}

// after is what follows the layer i: normalisation, activation and dropout.
func (m *Between) after(f *Fwd, i int, y *Tensor) *Tensor { return m.normed(f, m.Norms, i, y) }

// normed is after with the normalisations norms, nil for none.
func (m *Between) normed(f *Fwd, norms []Module, i int, y *Tensor) *Tensor {
	if norms != nil && m.Activation != "elu" {
		return normReLU(f, norms[i], y, m.Dropout)
	}
	if norms != nil {
		y = norms[i].Forward(f, y)
	}
	if y = m.activate(f, y); m.Dropout > 0 {
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
