package nn

var _ Conv = (*GraphConv)(nil)

// GraphConv is the layer
//
//	y_v = W_rel · aggr{w_uv · x_u : u → v} + b + W_root · x_v
//
// over the in-edges u → v of a block's destinations, with the edges' weights w (1 if the graph has
// none). Max ignores the weights.
//
// Parameters and semantics are those of torch_geometric.nn.GraphConv: lin_rel.weight
// [out, in], lin_rel.bias [out], lin_root.weight [out, in], and the sum as the
// default.
//
// Source: C. Morris et al., "Weisfeiler and Leman go neural: higher-order graph
// neural networks", AAAI 2019, arXiv:1810.02244.
type GraphConv struct {
	LinRel  *Linear `nn:"lin_rel"`
	LinRoot *Linear `nn:"lin_root"`

	Aggr Op
}

// NewGraphConv returns a GraphConv with the sum of neighbours.
func NewGraphConv(in, out int) *GraphConv {
	return &GraphConv{LinRel: NewLinear(in, out, true), LinRoot: NewLinear(in, out, false), Aggr: Sum}
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. A
// sparse h is transformed before it is aggregated.
func (c *GraphConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("GraphConv", "the layer is nil; create it with NewGraphConv")
	}
	aggregate := func(x *Tensor) *Tensor {
		if c.Aggr == Max {
			return f.Aggregate(b, x, Max)
		}
		return f.AggregateWeighted(b, x, b.Weights(), c.Aggr)
	}
	own := f.Dst(b, h) // before the aggregation, see SAGEConv
	var y *Tensor
	if h.Sparse() && c.Aggr != Max {
		y = f.AddRow(aggregate(c.LinRel.Product(f, h)), f.Param(c.LinRel.Bias))
	} else {
		y = c.LinRel.Forward(f, aggregate(h))
	}
	return f.Add(y, c.LinRoot.Forward(f, own))
}
