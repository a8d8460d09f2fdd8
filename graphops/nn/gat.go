package nn

var (
	_ Conv     = (*GATConv)(nil)
	_ Resetter = (*GATConv)(nil)
)

// GATConv is graph attention with H heads of F columns: for each head
//
//	y_v = Σ_u α_uv · W·x_u + b,  α_uv = softmax over u of LeakyReLU(a_src·W·x_u + a_dst·W·x_v)
//
// over the in-edges u → v of a block's destinations and one self-loop of each (it replaces
// self-loops of the graph; edge weights are ignored). The heads are concatenated, y [NumDst, H·F],
// or with Mean averaged, y [NumDst, F].
//
// In training, each α is dropped with probability Dropout. Each head has a mask, keyed by the
// edge's CSC position (graphops.LoopPos for self-loops), so the mask is the same on any number of
// workers. With sampled neighbours the softmax is over the sampled ones, as in PyG.
//
// Parameters and semantics are those of torch_geometric.nn.GATConv: lin.weight
// [H·F, in], att_src [1, H, F], att_dst [1, H, F], bias [H·F] or with Mean [F].
//
// Source: P. Veličković et al., "Graph attention networks", ICLR 2018,
// arXiv:1710.10903, equations 3 to 6.
type GATConv struct {
	Lin    *Linear `nn:"lin"`
	AttSrc *Param  `nn:"att_src"`
	AttDst *Param  `nn:"att_dst"`
	Bias   *Param  `nn:"bias,vector,optional"` // nil: none

	Heads         int
	Mean          bool
	NegativeSlope float64
	Dropout       float64
}

// GATOptions are the options of a GATConv. The zero value is PyG's default.
type GATOptions struct {
	Heads         int     // number of heads; 0 means 1
	Mean          bool    // average the heads instead of concatenating them (concat=False)
	NegativeSlope float64 // of the LeakyReLU; 0 means 0.2
	Dropout       float64 // of the attention coefficients; 0 means none
	NoBias        bool    // omit b
}

// NewGAT returns a GATConv with one head.
func NewGAT(in, out int) *GATConv { return NewGATWith(in, out, GATOptions{}) }

// NewGATWith returns a GATConv; out is F, the columns of one head.
func NewGATWith(in, out int, o GATOptions) *GATConv {
	heads := max(o.Heads, 1)
	checkAttention("GATConv", o.Dropout, 0)
	c := &GATConv{
		Lin: NewLinear(in, heads*out, false), AttSrc: newAttention(heads, out), AttDst: newAttention(heads, out),
		Heads: heads, Mean: o.Mean, NegativeSlope: o.NegativeSlope, Dropout: o.Dropout,
	}
	if c.NegativeSlope == 0 {
		c.NegativeSlope = 0.2
	}
	if !o.NoBias {
		c.Bias = NewParam(1, headCols(heads, out, o.Mean))
	}
	return c
}

// Reset initialises the parameters as PyG does: Glorot's weights, a bias of zeros.
func (c *GATConv) Reset(init func(p *Param, bound float64)) {
	init(c.Lin.Weight, glorot(c.Lin.Weight.Cols, c.Lin.Weight.Rows))
	bound := glorot(c.Heads, c.AttSrc.Cols/max(c.Heads, 1))
	init(c.AttSrc, bound)
	init(c.AttDst, bound)
	init(c.Bias, 0)
}

// Forward returns y [NumDst, H·F], with Mean [NumDst, F], for h [NumSrc, in], in the space of the
// block's destinations. It does not store messages: it needs memory for W·x [NumSrc, H·F] and a few
// matrices [edges, H].
func (c *GATConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("GATConv", "the layer is nil; create it with NewGAT")
	}
	l := b.SelfLooped()
	x := c.Lin.Product(f, h)
	src := f.HeadDot(x, f.Param(c.AttSrc), c.Heads)
	dst := f.HeadDot(f.Dst(l, x), f.Param(c.AttDst), c.Heads)
	score := f.LeakyReLU(f.Add(f.GatherSrc(l, src), f.GatherDst(l, dst)), c.NegativeSlope)
	return attend(f, l, x, score, c.Heads, c.Mean, c.Dropout, c.Bias)
}
