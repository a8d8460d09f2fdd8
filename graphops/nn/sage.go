package nn

var _ Conv = (*SAGEConv)(nil)

// SAGEConv is the GraphSAGE layer
//
//	y_v = W_l · aggr{x_u : u → v} + b_l + W_r · x_v
//
// over the in-edges u → v of a block's destinations: x [NumSrc, in],
// y [NumDst, out]. The aggregate of a destination without in-edges is 0.
//
// Parameters and semantics are those of torch_geometric.nn.SAGEConv: lin_l.weight
// [out, in], lin_l.bias [out], lin_r.weight [out, in]. With NoRoot there is no
// lin_r (root_weight=False); with Normalize each y_v is divided by its L2 norm.
//
// Source: W. L. Hamilton, R. Ying, J. Leskovec, "Inductive representation
// learning on large graphs", NeurIPS 2017, arXiv:1706.02216, algorithm 1.
type SAGEConv struct {
	LinL *Linear `nn:"lin_l"`
	LinR *Linear `nn:"lin_r,optional"` // nil: the destination's own row is not used

	Aggr      Op
	Normalize bool
	Weighted  bool
}

// SAGEOptions are the options of a SAGEConv. The zero value is PyG's default.
type SAGEOptions struct {
	Aggr      Op   // Mean, Sum or Max
	Normalize bool // divide each row of the output by its L2 norm
	NoRoot    bool // omit W_r·x_v
	NoBias    bool // omit b_l
	// Weighted weighs the sources by the edges' weights, if the graph has any: the mean is Σ w·x / Σ w, and the sum
	// Σ w·x. There is no weighted maximum. PyG's SAGEConv has no weights.
	Weighted bool
}

// NewSAGE returns a SAGEConv with mean aggregation.
func NewSAGE(in, out int) *SAGEConv { return NewSAGEWith(in, out, SAGEOptions{}) }

// NewSAGEWith returns a SAGEConv with options.
func NewSAGEWith(in, out int, o SAGEOptions) *SAGEConv {
	if o.Weighted && o.Aggr == Max {
		fail("SAGEConv", "a maximum has no weights; take Mean or Sum for SAGEOptions.Weighted")
	}
	c := &SAGEConv{LinL: NewLinear(in, out, !o.NoBias), Aggr: o.Aggr, Normalize: o.Normalize, Weighted: o.Weighted}
	if !o.NoRoot {
		c.LinR = NewLinear(in, out, false)
	}
	return c
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. Its
// cost is one pass over the block's edges (no message is stored) and two matrix products. Except
// with Max, rows may be transformed before they are aggregated, because both are linear. Forward
// does so for a sparse h (see tensor.Fwd.SparseInput). It also does so for the whole graph and its
// slices, which have more edges than nodes, if out is less than in and the transformed rows of all
// nodes take at most 64 MB. A sampled block has many more sources than destinations and is
// aggregated first.
func (c *SAGEConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("SAGEConv", "the layer is nil; create it with NewSAGE")
	}
	var own, y *Tensor
	if c.LinR != nil {
		// This precedes the aggregation, so its gradient comes after the aggregation's, which
		// covers all rows and overwrites them.
		own = f.Dst(b, h)
	}
	if c.Aggr != Max && h.Sparse() || b.SliceOf() > 0 && c.narrows(b.SliceOf()) {
		y = c.aggregate(f, b, c.LinL.Product(f, h))
		if c.LinL.Bias != nil {
			y = f.AddRow(y, f.Param(c.LinL.Bias))
		}
	} else {
		y = c.LinL.Forward(f, c.aggregate(f, b, h))
	}
	if c.LinR != nil {
		y = f.Add(y, c.LinR.Forward(f, own))
	}
	if c.Normalize {
		y = f.L2Normalize(y)
	}
	return y
}

// aggregate aggregates the rows of the sources.
func (c *SAGEConv) aggregate(f *Fwd, b *Block, h *Tensor) *Tensor {
	switch {
	case !c.Weighted:
		return f.Aggregate(b, h, c.Aggr)
	case c.Aggr == Sum:
		return f.AggregateWeighted(b, h, b.Weights(), Sum)
	}
	return weightedMean(f, b, h)
}

// narrowFloats bounds the transformed rows of all nodes, 64 MB: every worker that computes a share
// of a layer transforms all of them.
const narrowFloats = 1 << 24

// narrows reports whether aggregating W_l·x of nodes nodes costs less than aggregating x: the layer
// is linear and has fewer columns out than in.
func (c *SAGEConv) narrows(nodes int) bool {
	if c.Aggr == Max || c.LinL == nil {
		return false
	}
	w := c.LinL.Weight
	return w.Rows < w.Cols && nodes*w.Rows <= narrowFloats
}
