package nn

var (
	_ Conv     = (*GatedGCNConv)(nil)
	_ Conv     = (*ResGatedConv)(nil)
	_ Resetter = (*ResGatedConv)(nil)
)

// GatedGCNConv weighs messages by gates, a number for each edge and column, that sum to nearly 1 over a destination's in-edges:
//
//	y_v = A·x_v + Σ_u η_uv ⊙ B·x_u,  η_uv = σ(ê_uv) / (Σ_w σ(ê_wv) + 1e-6)
//	ê_uv = D·x_v + E·x_u + C·e_uv
//
// over the in-edges u → v of a block's destinations, where e_uv are the edge's features, or any other row of the edge. All maps have
// biases. ê is a row for each edge, from which a network can make the next layer's e: see [GatedGCN]. A destination without in-edges
// gets A·x_v. With sampled neighbours the sums are over the sampled ones.
//
// Its parameters are A.weight [out, in], A.bias and so on, as in the GatedGCN layers of "Benchmarking graph neural networks" and
// of GraphGPS, which are no layers of PyG. C is absent without features of edges. A sparse x is multiplied four times.
//
// Source: X. Bresson, T. Laurent, "Residual gated graph ConvNets", 2017, arXiv:1711.07553, in the form of V. P. Dwivedi, C. K. Joshi,
// A. T. Luu, T. Laurent, Y. Bengio, X. Bresson, "Benchmarking graph neural networks", JMLR 2023, arXiv:2003.00982, section B.1.
type GatedGCNConv struct {
	A *Linear `nn:"A"`
	B *Linear `nn:"B"`
	C *Linear `nn:"C,optional"` // nil: edges have no rows
	D *Linear `nn:"D"`
	E *Linear `nn:"E"`
}

// gateEps is what keeps the quotient of gates finite, as in the authors' code.
const gateEps = 1e-6

// NewGatedGCN returns a GatedGCNConv for edges with rows of edgeDim columns; 0 means none.
func NewGatedGCN(in, out, edgeDim int) *GatedGCNConv {
	if edgeDim < 0 {
		fail("GatedGCNConv", "EdgeDim is %d; it is the number of features of an edge, or 0", edgeDim)
	}
	lin := func(in int) *Linear { return NewLinear(in, out, true) }
	c := &GatedGCNConv{A: lin(in), B: lin(in), D: lin(in), E: lin(in)}
	if edgeDim > 0 {
		c.C = lin(edgeDim)
	}
	return c
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It reads the features of the block's
// edges if the layer was made with their number. It needs memory for some matrices [edges, out].
func (c *GatedGCNConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	var edge *Tensor
	if c != nil && c.C != nil {
		edge = f.EdgeInput(b, c.C.Weight.Cols)
	}
	y, _ := c.ForwardEdges(f, b, h, edge)
	return y
}

// ForwardEdges is Forward with any rows of the edges, edge [edges, edgeDim], nil if the layer has no C. It also returns ê [edges, out],
// in the space of the block's edges.
func (c *GatedGCNConv) ForwardEdges(f *Fwd, b *Block, h, edge *Tensor) (y, gates *Tensor) {
	const op = "GatedGCNConv"
	switch {
	case c == nil:
		fail(op, "the layer is nil; create it with NewGatedGCN")
	case (edge != nil) != (c.C != nil):
		fail(op, "the layer was made for edges with rows: %v, and got rows of edges: %v", c.C != nil, edge != nil)
	}
	own := f.Dst(b, h)
	gates = f.Add(f.GatherDst(b, c.D.Forward(f, own)), f.GatherSrc(b, c.E.Forward(f, h)))
	if edge != nil {
		gates = f.Add(gates, c.C.Forward(f, edge))
	}
	share := f.Sigmoid(gates)
	sum := f.AggregateEdges(b, f.Mul(share, f.GatherSrc(b, c.B.Forward(f, h))), Sum)
	all := f.Reciprocal(f.Unmasked(func() *Tensor { return f.AggregateEdges(b, share, Sum) }), gateEps)
	return f.Add(f.Mul(sum, all), c.A.Forward(f, own)), gates
}

// ResGatedConv weighs messages by gates, a number for each edge and column:
//
//	y_v = W_skip·x_v + b + Σ_u σ(W_key·[x_v, e_uv] + W_query·[x_u, e_uv]) ⊙ W_value·[x_u, e_uv]
//
// over the in-edges u → v of a block's destinations. e_uv are the edge's features, if EdgeDim is set. W_key, W_query and W_value have
// biases. With sampled neighbours the sum is over the sampled ones, as in PyG. [GatedGCNConv] also divides by the sum of the gates.
//
// Parameters and semantics are those of torch_geometric.nn.ResGatedGraphConv: lin_key, lin_query and lin_value with weight
// [out, in+EdgeDim] and bias, lin_skip.weight [out, in], and bias [out].
//
// Source: X. Bresson, T. Laurent, "Residual gated graph ConvNets", 2017, arXiv:1711.07553.
type ResGatedConv struct {
	LinKey   *Linear `nn:"lin_key"`
	LinQuery *Linear `nn:"lin_query"`
	LinValue *Linear `nn:"lin_value"`
	LinSkip  *Linear `nn:"lin_skip"`
	Bias     *Param  `nn:"bias,vector"`

	edgeDim int
}

// NewResGated returns a ResGatedConv for edges of edgeDim features; 0 means none.
func NewResGated(in, out, edgeDim int) *ResGatedConv {
	if edgeDim < 0 {
		fail("ResGatedConv", "EdgeDim is %d; it is the number of features of an edge, or 0", edgeDim)
	}
	lin := func() *Linear { return NewLinear(in+edgeDim, out, true) }
	return &ResGatedConv{LinKey: lin(), LinQuery: lin(), LinValue: lin(), LinSkip: NewLinear(in, out, false), Bias: NewParam(1, out), edgeDim: edgeDim}
}

// Reset sets the bias b to 0, as PyG does.
func (c *ResGatedConv) Reset(init func(p *Param, bound float64)) { init(c.Bias, 0) }

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It needs memory for some matrices
// [edges, out]. The maps of rows of nodes are computed for each node, not for each edge.
func (c *ResGatedConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("ResGatedConv", "the layer is nil; create it with NewResGated")
	}
	own, in := f.Dst(b, h), h.Cols()
	key, query, value := partOf(f, c.LinKey, 0, in), partOf(f, c.LinQuery, 0, in), partOf(f, c.LinValue, 0, in)
	gate := f.Add(f.GatherDst(b, f.Linear(own, key, f.Param(c.LinKey.Bias))), f.GatherSrc(b, f.Linear(h, query, f.Param(c.LinQuery.Bias))))
	message := f.GatherSrc(b, f.Linear(h, value, f.Param(c.LinValue.Bias)))
	if d := c.edgeDim; d > 0 {
		edge := f.EdgeInput(b, d)
		gate = f.Add(gate, f.Linear(edge, f.Add(partOf(f, c.LinKey, in, in+d), partOf(f, c.LinQuery, in, in+d)), nil))
		message = f.Add(message, f.Linear(edge, partOf(f, c.LinValue, in, in+d), nil))
	}
	y := f.AggregateEdges(b, f.Mul(f.Sigmoid(gate), message), Sum)
	return f.Add(y, f.AddRow(c.LinSkip.Forward(f, own), f.Param(c.Bias)))
}

// partOf returns the columns [lo, hi) of a layer's weight, by which it multiplies these columns of its input; all of it if it has no others.
func partOf(f *Fwd, l *Linear, lo, hi int) *Tensor {
	w := f.Param(l.Weight)
	if lo == 0 && hi == w.Cols() {
		return w
	}
	return f.Cols(w, lo, hi)
}
