package nn

var (
	_ Conv     = (*GATv2Conv)(nil)
	_ Resetter = (*GATv2Conv)(nil)
)

// GATv2Conv is graph attention whose scores depend on both ends of an edge together, with H heads of
// F columns: for each head
//
//	y_v = Σ_u α_uv · W_l·x_u + b,  α_uv = softmax over u of a · LeakyReLU(W_l·x_u + W_r·x_v + W_e·e_uv)
//
// over the in-edges u → v of a block's destinations and one self-loop of each (it replaces self-loops
// of the graph; edge weights are ignored). e_uv are the edge's features, if EdgeDim is set; those of
// the self-loop are the mean of those of the destination's other edges in the block (PyG's
// fill_value="mean"), zeros if there are none. W_l and W_r have biases. The heads are concatenated, y
// [NumDst, H·F], or with Mean averaged, y [NumDst, F].
//
// Dropout is that of [GATConv]. With sampled neighbours the softmax and the mean are over the sampled
// ones, as in PyG.
//
// Parameters and semantics are those of torch_geometric.nn.GATv2Conv: lin_l.weight [H·F, in] and
// lin_l.bias, lin_r.weight and lin_r.bias (the same with ShareWeights), lin_edge.weight [H·F, EdgeDim],
// att [1, H, F], bias [H·F] or with Mean [F].
//
// Source: S. Brody, U. Alon, E. Yahav, "How attentive are graph attention networks?", ICLR 2022,
// arXiv:2105.14491, equation 7.
type GATv2Conv struct {
	LinL    *Linear `nn:"lin_l"`
	LinR    *Linear `nn:"lin_r"`
	LinEdge *Linear `nn:"lin_edge,optional"` // nil: edges have no features
	Att     *Param  `nn:"att"`
	Bias    *Param  `nn:"bias,vector,optional"` // nil: none

	Heads         int
	Mean          bool
	NegativeSlope float64
	Dropout       float64
}

// GATv2Options are the options of a GATv2Conv. The zero value is PyG's default.
type GATv2Options struct {
	Heads         int     // number of heads; 0 means 1
	Mean          bool    // average the heads instead of concatenating them (concat=False)
	NegativeSlope float64 // of the LeakyReLU; 0 means 0.2
	Dropout       float64 // of the attention coefficients; 0 means none
	EdgeDim       int     // number of features of an edge; 0 means none
	ShareWeights  bool    // W_r is W_l
	NoBias        bool    // omit b and the biases of W_l and W_r
}

// NewGATv2 returns a GATv2Conv with one head, without features of edges.
func NewGATv2(in, out int) *GATv2Conv { return NewGATv2With(in, out, GATv2Options{}) }

// NewGATv2With returns a GATv2Conv; out is F, the columns of one head.
func NewGATv2With(in, out int, o GATv2Options) *GATv2Conv {
	heads := max(o.Heads, 1)
	checkAttention("GATv2Conv", o.Dropout, o.EdgeDim)
	c := &GATv2Conv{
		LinL: NewLinear(in, heads*out, !o.NoBias), Att: newAttention(heads, out),
		Heads: heads, Mean: o.Mean, NegativeSlope: o.NegativeSlope, Dropout: o.Dropout,
	}
	if c.LinR = c.LinL; !o.ShareWeights {
		c.LinR = NewLinear(in, heads*out, !o.NoBias)
	}
	if o.EdgeDim > 0 {
		c.LinEdge = NewLinear(o.EdgeDim, heads*out, false)
	}
	if c.NegativeSlope == 0 {
		c.NegativeSlope = 0.2
	}
	if !o.NoBias {
		c.Bias = NewParam(1, headCols(heads, out, o.Mean))
	}
	return c
}

// Reset initialises the parameters as PyG does: Glorot's weights, biases of W_l and W_r from U(±1/√in),
// and a bias b of zeros.
func (c *GATv2Conv) Reset(init func(p *Param, bound float64)) {
	for _, l := range []*Linear{c.LinL, c.LinR, c.LinEdge} {
		if l != nil {
			l.Reset(init)
			init(l.Weight, glorot(l.Weight.Cols, l.Weight.Rows))
		}
	}
	init(c.Att, glorot(c.Heads, c.Att.Cols/max(c.Heads, 1)))
	init(c.Bias, 0)
}

// Forward returns y [NumDst, H·F], with Mean [NumDst, F], for h [NumSrc, in], in the space of the
// block's destinations. It needs memory for some matrices [edges, H·F], because each score is a
// function of both ends.
func (c *GATv2Conv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("GATv2Conv", "the layer is nil; create it with NewGATv2")
	}
	l := b.SelfLooped()
	x := c.LinL.Forward(f, h)
	own := f.Dst(l, x)
	if c.LinR != c.LinL {
		own = c.LinR.Forward(f, f.Dst(l, h))
	}
	z := f.Add(f.GatherSrc(l, x), f.GatherDst(l, own))
	if c.LinEdge != nil {
		z = f.Add(z, c.LinEdge.Forward(f, f.EdgeInput(l, c.LinEdge.Weight.Cols)))
	}
	score := f.HeadDot(f.LeakyReLU(z, c.NegativeSlope), f.Param(c.Att), c.Heads)
	return attend(f, l, x, score, c.Heads, c.Mean, c.Dropout, c.Bias)
}

var (
	_ Model             = (*GATv2)(nil)
	_ Reader            = (*GATv2)(nil)
	_ SourceTransformer = (*GATv2)(nil)
)

// GATv2 is a stack of GATv2Conv layers as [GAT] is of GATConv layers. Each layer uses the features of
// the edges if ModelConfig.EdgeDim is set. Its parameters have the names of torch_geometric.nn.GAT's
// state_dict with v2=True: convs.0.att, convs.0.bias, convs.0.lin_l.weight, convs.0.lin_l.bias, …
type GATv2 struct {
	Convs []*GATv2Conv `nn:"convs"`
	Between
}

// NewGATv2Model returns a GATv2. It panics with a [*tensor.Error] if Hidden is not a multiple of Heads.
func NewGATv2Model(s ModelConfig) *GATv2 {
	s = s.withELU()
	return &GATv2{
		Convs: attentionStack(s, "NewGATv2Model", func(in, out, heads int, mean bool) *GATv2Conv {
			return NewGATv2With(in, out, GATv2Options{Heads: heads, Mean: mean, Dropout: s.attentionDropout(), EdgeDim: s.EdgeDim, NoBias: s.Arrangement == Strong})
		}),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GATv2) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GATv2) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// gatv2Chunks bounds the memory that a layer needs for each edge and column.
const gatv2Chunks = 16

// SourceChunks implements [SourceTransformer].
func (m *GATv2) SourceChunks(int, int) int { return gatv2Chunks }
