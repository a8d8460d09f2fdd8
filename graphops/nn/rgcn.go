package nn

import "github.com/graphnb/graphnb/graphops/tensor"

var (
	_ Conv     = (*RGCNConv)(nil)
	_ Resetter = (*RGCNConv)(nil)
)

// RGCNConv is the relational graph convolution
//
//	y_v = Σ_r aggr{x_u : u → v of relation r}·W_r + x_v·W_root + b
//
// over the in-edges of a block's destinations, whose graph has types of edges: x [NumSrc, in], y [NumDst, out].
// The mean of a relation is over v's in-edges of that relation. With Bases, each W_r is a sum of the same few
// matrices, W_r = Σ_k comp[r,k]·V_k, so that a relation with few edges has few weights of its own. With Blocks,
// W_r is block-diagonal: block k of the columns of x gives block k of y.
//
// With sampled neighbours the mean is over the sampled ones, as in PyG. Edge weights and features are ignored.
//
// Parameters and semantics are those of torch_geometric.nn.RGCNConv: weight [bases, in, out] and comp
// [relations, bases], without bases weight [relations, in, out], with blocks weight [relations, blocks, in/blocks,
// out/blocks]; root [in, out] and bias [out].
//
// Source: M. Schlichtkrull et al., "Modeling relational data with graph convolutional networks", ESWC 2018,
// arXiv:1703.06103, equations 2 and 3, doi:10.1007/978-3-319-93417-4_38.
type RGCNConv struct {
	Weight *Param `nn:"weight"`
	Comp   *Param `nn:"comp,optional"` // nil: a matrix for each relation
	Root   *Param `nn:"root,optional"` // nil: the destination's own row is not used
	Bias   *Param `nn:"bias,vector,optional"`

	Relations int
	// Blocks is the number of blocks of a relation's matrix, 0 unless it is block-diagonal.
	Blocks int
	Aggr   Op
	// ByRelation makes the matrices of the relations from the bases and multiplies by each relation's own:
	// faster if most destinations have in-edges of fewer relations than there are bases. The results differ
	// by rounding.
	ByRelation bool
}

// RGCNOptions are the options of an RGCNConv. The zero value is PyG's default.
type RGCNOptions struct {
	Bases      int  // number of bases; 0 means none
	Blocks     int  // number of blocks of a block-diagonal matrix; 0 means matrices that are not
	Aggr       Op   // Mean or Sum
	NoRoot     bool // omit x_v·W_root
	NoBias     bool // omit b
	ByRelation bool // see RGCNConv
}

// NewRGCN returns an RGCNConv with a matrix for each of the relations.
func NewRGCN(in, out, relations int) *RGCNConv {
	return NewRGCNWith(in, out, relations, RGCNOptions{})
}

// NewRGCNWith returns an RGCNConv with options.
func NewRGCNWith(in, out, relations int, o RGCNOptions) *RGCNConv {
	const op = "RGCNConv"
	switch {
	case relations < 1:
		fail(op, "it was made for %d relations; it needs at least one", relations)
	case o.Bases < 0:
		fail(op, "Bases is %d; it is the number of bases, or 0 for none", o.Bases)
	case o.Aggr != Mean && o.Aggr != Sum:
		fail(op, "Aggr is %v; use Mean or Sum", o.Aggr)
	case o.Blocks < 0 || o.Blocks > 0 && (in%o.Blocks != 0 || out%o.Blocks != 0):
		fail(op, "Blocks is %d, and the layer has %d columns in and %d out; Blocks divides both", o.Blocks, in, out)
	case o.Blocks > 0 && o.Bases > 0:
		fail(op, "it has %d blocks and %d bases; a relation's matrix is block-diagonal or a sum of bases", o.Blocks, o.Bases)
	}
	c := &RGCNConv{Relations: relations, Blocks: o.Blocks, Aggr: o.Aggr, ByRelation: o.ByRelation}
	n := relations
	if o.Bases > 0 {
		n = o.Bases
		c.Comp = NewParam(relations, o.Bases)
	}
	if o.Blocks > 0 {
		c.Weight = NewParam(n*in, out/o.Blocks)
		c.Weight.FileShape = []int{n, o.Blocks, in / o.Blocks, out / o.Blocks}
	} else {
		c.Weight = NewParam(n*in, out)
		c.Weight.FileShape = []int{n, in, out}
	}
	if !o.NoRoot {
		c.Root = NewParam(in, out)
	}
	if !o.NoBias {
		c.Bias = NewParam(1, out)
	}
	return c
}

// Reset initialises the parameters as PyG does: Glorot's weights, a bias of zeros.
func (c *RGCNConv) Reset(init func(p *Param, bound float64)) {
	n := c.Relations
	if c.Comp != nil {
		n = c.Comp.Cols
		init(c.Comp, glorot(c.Comp.Rows, c.Comp.Cols))
	}
	init(c.Weight, glorot(c.Weight.Rows/max(n, 1)/max(c.Blocks, 1), c.Weight.Cols))
	if c.Root != nil {
		init(c.Root, glorot(c.Root.Rows, c.Root.Cols))
	}
	init(c.Bias, 0)
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It stores no
// message for an edge. With bases it needs memory for a matrix [NumDst, bases·in], otherwise (and with
// ByRelation or Blocks) for some [pairs, in], with a pair for each destination and relation that has edges into it.
func (c *RGCNConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "RGCNConv"
	if c == nil {
		fail(op, "the layer is nil; create it with NewRGCN")
	}
	n := c.Relations
	if c.Comp != nil {
		n = c.Comp.Cols
	}
	in := c.Weight.Rows / max(n, 1)
	if h.Cols() != in {
		fail(op, "h is [%d,%d], but the layer was made for %d columns", h.Rows(), h.Cols(), in)
	}
	var own, y *Tensor
	if c.Root != nil {
		own = f.Dst(b, h) // before the aggregation: see SAGEConv
	}
	w := f.Param(c.Weight)
	switch {
	case c.Blocks > 0:
		pairs := pairsOf(op, b, c.Relations)
		m := c.blocks(f, pairs.starts, f.Aggregate(pairs.into, h, c.Aggr), w)
		y = f.Aggregate(pairs.out, m, Sum).SetSpace(tensor.DstSpace(b))
	case c.Comp != nil && !c.ByRelation:
		y = f.MatMul(f.AggregateTyped(b, h, edgeTypes(op, b, c.Relations), f.Param(c.Comp), c.Aggr), w)
	default:
		if c.Comp != nil {
			w = f.Reshape(f.MatMul(f.Param(c.Comp), f.Reshape(w, n, in*c.Weight.Cols)), c.Relations*in, c.Weight.Cols)
		}
		pairs := pairsOf(op, b, c.Relations)
		m := pairs.stack(f, f.Aggregate(pairs.into, h, c.Aggr), c.Weight.Cols, func(r int, rows *Tensor) *Tensor {
			return f.MatMul(rows, f.Rows(w, r*in, (r+1)*in))
		})
		y = f.Aggregate(pairs.out, m, Sum).SetSpace(tensor.DstSpace(b))
	}
	if c.Root != nil {
		y = f.AddProducts(y, f.MatMul(own, f.Param(c.Root)))
	}
	if c.Bias != nil {
		y = f.AddRow(y, f.Param(c.Bias))
	}
	return y
}
