package nn

// ModelConfig is what most models are made from; what is zero is off, or the model's own
// choice. Package gnb calls it gnb.ModelConfig.
type ModelConfig struct {
	In      int     `json:"in"`      // features of a node
	Hidden  int     `json:"hidden"`  // columns between layers
	Out     int     `json:"out"`     // classes
	Layers  int     `json:"layers"`  // number of layers, also the hops a batch needs
	Dropout float64 `json:"dropout"` // chance of an element to be dropped between layers

	// InputDropout is the chance of an element of the first layer's input to be
	// dropped: with Dropout, Kipf's and Veličković's dropout before each layer.
	InputDropout float64 `json:"input_dropout,omitempty"`
	// Heads is the number of attention heads of a GAT's layers (0: 1), OutHeads
	// that of its last layer (0: Heads). Hidden is all heads together.
	Heads    int `json:"heads,omitempty"`
	OutHeads int `json:"out_heads,omitempty"`
	// Norm is the normalisation between layers: "", "layer" or "batch".
	Norm string `json:"norm,omitempty"`
	// Residual adds each layer's input to its output.
	Residual bool `json:"residual,omitempty"`
	// Activation is what stands between layers: "relu" or "elu"; "" is "elu" for
	// a GAT, "relu" for others.
	Activation string `json:"activation,omitempty"`
	// BatchDegrees is [GCNConv]'s.
	BatchDegrees bool `json:"batch_degrees,omitempty"`
}

func (s ModelConfig) check(op string) {
	switch {
	case s.Layers < 1:
		fail(op, "ModelConfig.Layers is %d; a model needs at least 1 layer", s.Layers)
	case s.In < 1:
		fail(op, "ModelConfig.In is %d; it must be the number of features of a node", s.In)
	case s.Out < 1:
		fail(op, "ModelConfig.Out is %d; it must be the number of classes", s.Out)
	case s.Hidden < 1 && s.Layers > 1:
		fail(op, "ModelConfig.Hidden is %d; a model of %d layers needs at least 1 hidden column", s.Hidden, s.Layers)
	case !(s.Dropout >= 0 && s.Dropout < 1):
		fail(op, "ModelConfig.Dropout is %v; it must be at least 0 and below 1", s.Dropout)
	case !(s.InputDropout >= 0 && s.InputDropout < 1):
		fail(op, "ModelConfig.InputDropout is %v; it must be at least 0 and below 1", s.InputDropout)
	case s.Heads < 0 || s.OutHeads < 0:
		fail(op, "ModelConfig.Heads is %d and OutHeads %d; they cannot be negative", s.Heads, s.OutHeads)
	case s.Norm != "" && s.Norm != "layer" && s.Norm != "batch":
		fail(op, "ModelConfig.Norm is %q; there are layer and batch", s.Norm)
	case s.Activation != "" && s.Activation != "relu" && s.Activation != "elu":
		fail(op, "ModelConfig.Activation is %q; there are relu and elu", s.Activation)
	}
}

// Stack makes s.Layers layers, In → Hidden → … → Out:
//
//	nn.Stack(s, nn.NewSAGE) // []*nn.SAGEConv
//
// It panics with a [*tensor.Error] where a size makes no sense.
func Stack[L any](s ModelConfig, layer func(in, out int) L) []L {
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
	Convs []*SAGEConv `nn:"convs"`
	Between
}

// NewSAGEModel makes a SAGE with mean aggregation.
func NewSAGEModel(s ModelConfig) *SAGE { return NewSAGEModelWith(s, SAGEOptions{}) }

// NewSAGEModelWith makes a SAGE whose layers have the given options.
func NewSAGEModelWith(s ModelConfig, o SAGEOptions) *SAGE {
	return &SAGE{
		Convs:   Stack(s, func(in, out int) *SAGEConv { return NewSAGEWith(in, out, o) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *SAGE) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *SAGE) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *SAGE) SourceChunks(i, nodes int) int {
	if m.Convs[i].narrows(nodes) {
		return 1
	}
	return 0
}

// GCN is GCNConv layers with ReLU and dropout between them. Its parameters have
// the names of torch_geometric.nn.GCN's state_dict: convs.0.bias,
// convs.0.lin.weight, convs.1.…
type GCN struct {
	Convs []*GCNConv `nn:"convs"`
	Between
}

// NewGCNModel makes a GCN.
func NewGCNModel(s ModelConfig) *GCN {
	o := GCNOptions{BatchDegrees: s.BatchDegrees}
	return &GCN{
		Convs:   Stack(s, func(in, out int) *GCNConv { return NewGCNWith(in, out, o) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GCN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GCN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *GCN) SourceChunks(i, _ int) int {
	if m.Convs[i].transformsFirst(false) {
		return 1
	}
	return 0
}

// GAT is GATConv layers with ELU and dropout between them; the dropout is that of
// the attention coefficients too, in all layers. Hidden layers put Heads heads of
// Hidden/Heads columns side by side, the last takes the mean of OutHeads heads of
// Out columns. Its parameters have the names of torch_geometric.nn.GAT's
// state_dict: convs.0.att_src, convs.0.att_dst, convs.0.bias, convs.0.lin.weight,
// convs.1.…
type GAT struct {
	Convs []*GATConv `nn:"convs"`
	Between
}

// NewGATModel makes a GAT. It panics with a [*tensor.Error] where Hidden is not a
// multiple of Heads.
func NewGATModel(s ModelConfig) *GAT {
	heads := max(s.Heads, 1)
	last := s.OutHeads
	if last == 0 {
		last = heads
	}
	if s.Layers > 1 && s.Hidden%heads != 0 {
		fail("NewGATModel", "ModelConfig.Hidden is %d and Heads is %d; the heads must divide the hidden columns", s.Hidden, heads)
	}
	if s.Activation == "" {
		s.Activation = "elu"
	}
	made := 0
	return &GAT{
		Convs: Stack(s, func(in, out int) *GATConv {
			if made++; made == s.Layers {
				return NewGATWith(in, out, GATOptions{Heads: last, Mean: true, Dropout: s.Dropout})
			}
			return NewGATWith(in, out/heads, GATOptions{Heads: heads, Dropout: s.Dropout})
		}),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GAT) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GAT) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// gatChunks bounds what a layer keeps for each edge and head.
const gatChunks = 4

// SourceChunks implements [SourceTransformer].
func (m *GAT) SourceChunks(int, int) int { return gatChunks }

// GIN is GINConv layers with ReLU and dropout between them, each with a
// [Perceptron] of two layers. Its parameters have the names of
// torch_geometric.nn.GIN's state_dict: convs.0.nn.lins.0.weight,
// convs.0.nn.lins.0.bias, convs.0.nn.lins.1.…, convs.0.eps, convs.1.…; a
// normalisation stands within the perceptrons as well (convs.0.nn.norms.0.…), as
// there.
type GIN struct {
	Convs []*GINConv `nn:"convs"`
	Between
}

// NewGINModel makes a GIN with ε = 0, not trained.
func NewGINModel(s ModelConfig) *GIN { return NewGINModelWith(s, GINOptions{}) }

// NewGINModelWith makes a GIN whose layers have the given options.
func NewGINModelWith(s ModelConfig, o GINOptions) *GIN {
	return &GIN{
		Convs: Stack(s, func(in, out int) *GINConv {
			p := NewPerceptron(in, out, out)
			p.Norms = newNorms(s.Norm, 1, out)
			return NewGINWith(p, o)
		}),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GIN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GIN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// MLP looks at each node's own features only, whatever its neighbours: the
// baseline that tells what the graph is worth. Linear layers with ReLU and
// dropout between them, named lins.0.weight, lins.0.bias, lins.1.…, as
// torch_geometric.nn.MLP's with norm=None.
type MLP struct {
	Lins []*Linear `nn:"lins"`
	Between
}

// NewMLPModel makes an MLP.
func NewMLPModel(s ModelConfig) *MLP {
	return &MLP{
		Lins:    Stack(s, func(in, out int) *Linear { return NewLinear(in, out, true) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *MLP) NumLayers() int { return len(m.Lins) }

// Layer implements [Model].
func (m *MLP) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Lins), b, h, func(f *Fwd, b *Block, h *Tensor) *Tensor {
		return m.Lins[i].Forward(f, f.Dst(b, h))
	})
}
