package nn

// Sizes is what most models are made from. Package gnb calls it gnb.Sizes.
type Sizes struct {
	In      int     `json:"in"`      // features of a node
	Hidden  int     `json:"hidden"`  // columns between layers
	Out     int     `json:"out"`     // classes
	Layers  int     `json:"layers"`  // number of layers, also the hops a batch needs
	Dropout float64 `json:"dropout"` // chance of an element to be dropped between layers
}

func (s Sizes) check(op string) {
	switch {
	case s.Layers < 1:
		fail(op, "Sizes.Layers is %d; a model needs at least 1 layer", s.Layers)
	case s.In < 1:
		fail(op, "Sizes.In is %d; it must be the number of features of a node", s.In)
	case s.Out < 1:
		fail(op, "Sizes.Out is %d; it must be the number of classes", s.Out)
	case s.Hidden < 1 && s.Layers > 1:
		fail(op, "Sizes.Hidden is %d; a model of %d layers needs at least 1 hidden column", s.Hidden, s.Layers)
	case !(s.Dropout >= 0 && s.Dropout < 1):
		fail(op, "Sizes.Dropout is %v; it must be at least 0 and below 1", s.Dropout)
	}
}

// Stack makes s.Layers layers, In → Hidden → … → Out:
//
//	nn.Stack(s, nn.NewSAGE) // []*nn.SAGEConv
//
// It panics with a [*tensor.Error] where a size makes no sense.
func Stack[L any](s Sizes, layer func(in, out int) L) []L {
	s.check("Stack")
	layers := make([]L, s.Layers)
	in := s.In
	for i := range layers {
		out := s.Hidden
		if i == s.Layers-1 {
			out = s.Out
		}
		layers[i] = layer(in, out)
		in = out
	}
	return layers
}

// SAGE is GraphSAGE: SAGEConv layers with ReLU and dropout between them. Its
// parameters have the names of torch_geometric.nn.GraphSAGE's state_dict:
// convs.0.lin_l.weight, convs.0.lin_l.bias, convs.0.lin_r.weight, convs.1.…
type SAGE struct {
	Convs   []*SAGEConv `nn:"convs"`
	Dropout float64
}

// NewSAGEModel makes a SAGE with mean aggregation.
func NewSAGEModel(s Sizes) *SAGE { return NewSAGEModelWith(s, SAGEOptions{}) }

// NewSAGEModelWith makes a SAGE whose layers have the given options.
func NewSAGEModelWith(s Sizes, o SAGEOptions) *SAGE {
	return &SAGE{
		Convs:   Stack(s, func(in, out int) *SAGEConv { return NewSAGEWith(in, out, o) }),
		Dropout: s.Dropout,
	}
}

// NumLayers implements [Model].
func (m *SAGE) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *SAGE) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return between(f, m.Convs[i].Forward(f, b, h), i == len(m.Convs)-1, m.Dropout)
}

// MLP looks at each node's own features only, whatever its neighbours: the
// baseline that tells what the graph is worth. Linear layers with ReLU and
// dropout between them, named lins.0.weight, lins.0.bias, lins.1.…, as
// torch_geometric.nn.MLP's with norm=None.
type MLP struct {
	Lins    []*Linear `nn:"lins"`
	Dropout float64
}

// NewMLPModel makes an MLP.
func NewMLPModel(s Sizes) *MLP {
	return &MLP{
		Lins:    Stack(s, func(in, out int) *Linear { return NewLinear(in, out, true) }),
		Dropout: s.Dropout,
	}
}

// NumLayers implements [Model].
func (m *MLP) NumLayers() int { return len(m.Lins) }

// Layer implements [Model].
func (m *MLP) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return between(f, m.Lins[i].Forward(f, f.Dst(b, h)), i == len(m.Lins)-1, m.Dropout)
}

// between is what stands between two layers.
func between(f *Fwd, h *Tensor, last bool, dropout float64) *Tensor {
	if last {
		return h
	}
	h = f.ReLU(h)
	if dropout > 0 {
		h = f.Dropout(h, dropout)
	}
	return h
}
