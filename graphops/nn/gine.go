package nn

var (
	_ Conv     = (*GINEConv)(nil)
	_ Resetter = (*GINEConv)(nil)
)

// GINEConv is [GINConv] with features of edges:
//
//	y_v = nn((1 + ε)·x_v + Σ_u ReLU(x_u + W·e_uv + b))
//
// over the in-edges u → v of a block's destinations, where e_uv are the edge's features. nn is any
// row-wise module, usually a [Perceptron]. Without Lin, e_uv itself is added, and must have as many
// columns as x.
//
// Parameters and semantics are those of torch_geometric.nn.GINEConv: nn.…, lin.weight [in, EdgeDim] and
// lin.bias, and eps [1], which is trained only with TrainEps. With sampled neighbours the sum is over
// the sampled ones, as in PyG. A sparse x is converted to a dense one.
//
// Source: W. Hu, B. Liu, J. Gomes et al., "Strategies for pre-training graph neural networks", ICLR
// 2020, arXiv:1905.12265.
type GINEConv struct {
	NN  Module  `nn:"nn"`
	Lin *Linear `nn:"lin,optional"` // nil: the edges' features are added as they are
	Eps *Param  `nn:"eps,vector"`

	start float32
}

// GINEOptions are the options of a GINEConv. The zero value is PyG's default with edge_dim.
type GINEOptions struct {
	Eps      float32 // initial value of ε; 0 is PyG's default
	TrainEps bool    // train ε
	NoLin    bool    // add the features of edges as they are (edge_dim=None)
}

// NewGINE returns a GINEConv with the given module and ε = 0, for h of in columns and edges of edgeDim
// features.
func NewGINE(nn Module, in, edgeDim int) *GINEConv {
	return NewGINEWith(nn, in, edgeDim, GINEOptions{})
}

// NewGINEWith returns a GINEConv with options.
func NewGINEWith(nn Module, in, edgeDim int, o GINEOptions) *GINEConv {
	switch {
	case edgeDim < 1:
		fail("GINEConv", "the edges have %d features; use GINConv without features of edges", edgeDim)
	case o.NoLin && edgeDim != in:
		fail("GINEConv", "the edges have %d features and h has %d columns; with NoLin they must be equally many", edgeDim, in)
	}
	eps := NewFixed(1, 1, o.Eps)
	eps.Fixed = !o.TrainEps
	c := &GINEConv{NN: nn, Eps: eps, start: o.Eps}
	if !o.NoLin {
		c.Lin = NewLinear(edgeDim, in, true)
	}
	return c
}

// Reset sets ε to its initial value.
func (c *GINEConv) Reset(func(p *Param, bound float64)) { c.Eps.W[0] = c.start }

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It
// needs memory for some matrices [edges, in].
func (c *GINEConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil || c.NN == nil {
		fail("GINEConv", "the layer or its module is nil; create it with NewGINE")
	}
	var edge *Tensor
	if c.Lin != nil {
		edge = c.Lin.Forward(f, f.EdgeInput(b, c.Lin.Weight.Cols))
	} else {
		edge = f.EdgeInput(b, h.Cols())
	}
	own := f.Dst(b, h)
	x := f.Add(f.AggregateEdges(b, f.ReLU(f.Add(f.GatherSrc(b, h), edge)), Sum), own)
	if !c.Eps.Fixed || c.Eps.W[0] != 0 {
		x = f.Add(x, f.ScaleBy(own, f.Param(c.Eps)))
	}
	return c.NN.Forward(f, x)
}
