package nn

// Plus is the part of a model around its layers in the arrangement of GNN+, which the models [GINE], [GatedGCN] and [PNA] have. A linear
// layer encodes the rows of the nodes to Hidden columns; each layer keeps them:
//
//	y ← dropout(ReLU(norm(conv(x)))),  y ← y + x,  y ← norm(y + dropout(W_2·dropout(ReLU(W_1·y))))
//
// and a linear layer makes Out columns of the last layer's rows. The norms are ModelConfig.Norm, the sum y + x is there with Residual,
// and what follows it, the feed-forward part of 2·Hidden columns, with FeedForward. InputDropout is before the encoder. There is no
// jumping knowledge. Embed Plus in a model of your own as you would [Between].
//
// Its parameters are norms.0.…, encoder.weight, encoder.bias, ffs.0.lins.0.weight, …, ff_norms.0.…, head.weight and head.bias.
//
// Source: Y. Luo, L. Shi, X.-M. Wu, "Unlocking the potential of classic GNNs for graph-level tasks: simple architectures meet
// excellence", ICML 2025, arXiv:2502.09263, equations 6 to 12.
type Plus struct {
	Between               // with a norm for each layer
	Encoder *Linear       `nn:"encoder"`
	FFs     []*Perceptron `nn:"ffs,optional"`      // nil, or one for each layer
	FFNorms []Module      `nn:"ff_norms,optional"` // nil, or one for each layer
	Head    *Linear       `nn:"head,optional"`     // nil: the last layer's rows are the output
}

// NewPlus returns the Plus that s describes. It panics with a [*tensor.Error] if s is invalid.
func NewPlus(s ModelConfig) Plus {
	const op = "NewPlus"
	s.check(op)
	switch {
	case s.Hidden < 1:
		fail(op, "ModelConfig.Hidden is %d; it must be the number of columns of a layer", s.Hidden)
	case s.JK != "":
		fail(op, "ModelConfig.JK is %q, but these models have no jumping knowledge; leave it out", s.JK)
	case s.Arrangement != "" || s.PreLinear:
		fail(op, "ModelConfig has the arrangement %q and PreLinear %v, but these models have their own arrangement and encoder; leave both out", s.Arrangement, s.PreLinear)
	}
	m := Plus{
		Between: Between{Norms: newNorms(s.Norm, s.Layers, s.Hidden), Dropout: s.Dropout, InputDropout: s.InputDropout, Residual: s.Residual, Activation: s.Activation},
		Encoder: NewLinear(s.In, s.Hidden, true), Head: NewLinear(s.Hidden, s.Out, true),
	}
	if s.FeedForward {
		for range s.Layers {
			ff := NewPerceptron(s.Hidden, 2*s.Hidden, s.Hidden)
			ff.Dropout = s.Dropout
			m.FFs = append(m.FFs, ff)
		}
		m.FFNorms = newNorms(s.Norm, s.Layers, s.Hidden)
	}
	return m
}

// Around runs layer i of layers, with the operations before and after it.
func (m *Plus) Around(f *Fwd, i, layers int, b *Block, h *Tensor, layer func(f *Fwd, b *Block, h *Tensor) *Tensor) *Tensor {
	if i == 0 {
		if m.InputDropout > 0 {
			h = f.Dropout(h, m.InputDropout)
		}
		h = m.Encoder.Forward(f, h)
	}
	y := m.after(f, i, layer(f, b, h))
	if m.Residual {
		y = f.Add(y, f.Dst(b, h))
	}
	if m.FFs != nil {
		z := m.FFs[i].Forward(f, y)
		if m.Dropout > 0 {
			z = f.Dropout(z, m.Dropout)
		}
		y = f.Add(y, z)
		if m.FFNorms != nil {
			y = m.FFNorms[i].Forward(f, y)
		}
	}
	if i == layers-1 && m.Head != nil {
		y = m.Head.Forward(f, y)
	}
	return y
}

// plusConvs makes the layers of a model with [Plus], from Hidden to Hidden columns.
func plusConvs[C any](s ModelConfig, conv func() C) (convs []C) {
	for range s.Layers {
		convs = append(convs, conv())
	}
	return convs
}

var (
	_ Model             = (*GINE)(nil)
	_ Reader            = (*GINE)(nil)
	_ SourceTransformer = (*GINE)(nil)
)

// GINE is a stack of GINEConv layers in the arrangement of [Plus], or of GINConv layers if ModelConfig.EdgeDim is 0, each with a
// [Perceptron] of two layers and ε = 0, not trained.
type GINE struct {
	Convs []Conv `nn:"convs"`
	Plus
}

// NewGINEModel returns a GINE.
func NewGINEModel(s ModelConfig) *GINE {
	m := &GINE{Plus: NewPlus(s)}
	m.Convs = plusConvs(s, func() Conv {
		p := NewPerceptron(s.Hidden, s.Hidden, s.Hidden)
		if s.EdgeDim > 0 {
			return NewGINE(p, s.Hidden, s.EdgeDim)
		}
		return NewGIN(p)
	})
	return m
}

// NumLayers implements [Model].
func (m *GINE) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GINE) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *GINE) SourceChunks(int, int) int { return gatv2Chunks }

var (
	_ Model             = (*PNA)(nil)
	_ Reader            = (*PNA)(nil)
	_ SourceTransformer = (*PNA)(nil)
)

// PNA is a stack of PNAConv layers in the arrangement of [Plus], with features of edges if ModelConfig.EdgeDim is set. Set
// ModelConfig.LogDegree from the training set.
type PNA struct {
	Convs []*PNAConv `nn:"convs"`
	Plus
}

// NewPNAModel returns a PNA.
func NewPNAModel(s ModelConfig) *PNA {
	m := &PNA{Plus: NewPlus(s)}
	m.Convs = plusConvs(s, func() *PNAConv {
		return NewPNA(s.Hidden, s.Hidden, PNAOptions{EdgeDim: s.EdgeDim, LogDegree: s.LogDegree})
	})
	return m
}

// NumLayers implements [Model].
func (m *PNA) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *PNA) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *PNA) SourceChunks(int, int) int { return gatv2Chunks }

var (
	_ Model             = (*GatedGCN)(nil)
	_ Reader            = (*GatedGCN)(nil)
	_ SourceTransformer = (*GatedGCN)(nil)
)

// GatedGCN is a stack of GatedGCNConv layers in the arrangement of [Plus]. There are two forms:
//
//   - Without ModelConfig.EdgeStates each layer reads the features of its block's edges, if ModelConfig.EdgeDim is set. A row then
//     does not depend on the block, so sampled batches, layer-wise inference and the whole graph agree.
//   - With EdgeStates, as in "Benchmarking graph neural networks", each layer makes the rows of the edges that the next one reads:
//     e ← e + dropout(ReLU(norm(ê))), from a linear layer's encoding of the features, without the sum unless Residual is set. All
//     layers must then have one block, as in a batch of whole graphs or in full-graph training: a sampled batch has other edges in
//     each layer, and layer-wise inference keeps no rows of edges. Both fail with an error at the second layer.
//
// With EdgeStates it has the parameters edge_encoder.weight and edge_encoder.bias if EdgeDim is set, and edge_norms.0.… for all
// layers but the last.
type GatedGCN struct {
	Convs       []*GatedGCNConv `nn:"convs"`
	EdgeEncoder *Linear         `nn:"edge_encoder,optional"` // nil without edge states or features
	EdgeNorms   []Module        `nn:"edge_norms,optional"`   // nil, or one for each layer but the last
	EdgeStates  bool
	Plus
}

// NewGatedGCNModel returns a GatedGCN.
func NewGatedGCNModel(s ModelConfig) *GatedGCN {
	plain := s
	plain.EdgeStates = false
	m := &GatedGCN{Plus: NewPlus(plain), EdgeStates: s.EdgeStates}
	dim := s.EdgeDim
	if s.EdgeStates && dim > 0 {
		m.EdgeEncoder = NewLinear(dim, s.Hidden, true)
		dim = s.Hidden
	}
	m.Convs = plusConvs(s, func() *GatedGCNConv {
		c := NewGatedGCN(s.Hidden, s.Hidden, dim)
		if s.EdgeStates {
			dim = s.Hidden // the later layers read states, also if the first has no features to read
		}
		return c
	})
	if s.EdgeStates {
		m.EdgeNorms = newNorms(s.Norm, s.Layers-1, s.Hidden)
	}
	return m
}

// NumLayers implements [Model].
func (m *GatedGCN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GatedGCN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, func(f *Fwd, b *Block, h *Tensor) *Tensor {
		if !m.EdgeStates {
			return m.Convs[i].Forward(f, b, h)
		}
		return m.withStates(f, i, b, h)
	})
}

// edgeStates is the key of the rows of a block's edges that a layer of a GatedGCN reads.
type edgeStates struct {
	m     *GatedGCN
	b     *Block
	layer int
}

// withStates is layer i with the rows of edges of the layer before.
func (m *GatedGCN) withStates(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	var edge *Tensor
	switch {
	case i > 0:
		if edge = f.Carried(edgeStates{m, b, i}); edge == nil {
			fail("GatedGCN", "there are no states of this block's edges from layer %d; with ModelConfig.EdgeStates all layers must run on one block in one pass, as with whole graphs, while sampled batches and layer-wise inference give each layer other edges; leave EdgeStates off for them", i-1)
		}
	case m.EdgeEncoder != nil:
		edge = m.EdgeEncoder.Forward(f, f.EdgeInput(b, m.EdgeEncoder.Weight.Cols))
	}
	y, e := m.Convs[i].ForwardEdges(f, b, h, edge)
	if i == len(m.Convs)-1 {
		return y
	}
	if e = m.normed(f, m.EdgeNorms, i, e); m.Residual && edge != nil {
		e = f.Add(e, edge)
	}
	f.Carry(edgeStates{m, b, i + 1}, e)
	return y
}

// SourceChunks implements [SourceTransformer].
func (m *GatedGCN) SourceChunks(int, int) int { return gatv2Chunks }
