package nn

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
)

var _ Conv = (*TransformerConv)(nil)

// TransformerConv is attention by the product of queries and keys, with H heads of F columns: for each
// head
//
//	y_v = W_skip·x_v + Σ_u α_uv · (W_value·x_u + W_e·e_uv)
//	α_uv = softmax over u of (W_query·x_v) · (W_key·x_u + W_e·e_uv) / √F
//
// over the in-edges u → v of a block's destinations, without self-loops. e_uv are the edge's features,
// if EdgeDim is set. All but W_e have biases. The heads are concatenated, y [NumDst, H·F], or with Mean
// averaged, y [NumDst, F]. With Beta, r = W_skip·x_v and the sum m are weighed,
//
//	y_v = β·r + (1 - β)·m,  β = sigmoid(w · [m, r, m - r])
//
// In training, each α is dropped with probability Dropout, with a mask per head keyed by the edge's CSC
// position. With sampled neighbours the softmax is over the sampled ones, as in PyG. A destination
// without in-edges gets r alone.
//
// Parameters and semantics are those of torch_geometric.nn.TransformerConv: lin_key, lin_query,
// lin_value and lin_skip with weight [H·F, in] and bias (lin_skip with Mean [F, in]), lin_edge.weight
// [H·F, EdgeDim], and lin_beta.weight [1, 3·H·F], with Mean [1, 3·F].
//
// Source: Y. Shi, Z. Huang, S. Feng, H. Zhong, W. Wang, Y. Sun, "Masked label prediction: unified
// message passing model for semi-supervised classification", IJCAI 2021, arXiv:2009.03509, equations 3
// to 6.
type TransformerConv struct {
	LinKey   *Linear `nn:"lin_key"`
	LinQuery *Linear `nn:"lin_query"`
	LinValue *Linear `nn:"lin_value"`
	LinEdge  *Linear `nn:"lin_edge,optional"` // nil: edges have no features
	LinSkip  *Linear `nn:"lin_skip"`
	LinBeta  *Linear `nn:"lin_beta,optional"` // nil: β is not used

	Heads   int
	Mean    bool
	Dropout float64
}

// TransformerOptions are the options of a TransformerConv. The zero value is PyG's default.
type TransformerOptions struct {
	Heads   int     // number of heads; 0 means 1
	Mean    bool    // average the heads instead of concatenating them (concat=False)
	Beta    bool    // weigh W_skip·x and the sum by β
	Dropout float64 // of the attention coefficients; 0 means none
	EdgeDim int     // number of features of an edge; 0 means none
	NoBias  bool    // omit the biases
}

// NewTransformer returns a TransformerConv with one head, without features of edges.
func NewTransformer(in, out int) *TransformerConv {
	return NewTransformerWith(in, out, TransformerOptions{})
}

// NewTransformerWith returns a TransformerConv; out is F, the columns of one head.
func NewTransformerWith(in, out int, o TransformerOptions) *TransformerConv {
	heads := max(o.Heads, 1)
	checkAttention("TransformerConv", o.Dropout, o.EdgeDim)
	lin := func() *Linear { return NewLinear(in, heads*out, !o.NoBias) }
	c := &TransformerConv{LinKey: lin(), LinQuery: lin(), LinValue: lin(), Heads: heads, Mean: o.Mean, Dropout: o.Dropout}
	if o.EdgeDim > 0 {
		c.LinEdge = NewLinear(o.EdgeDim, heads*out, false)
	}
	cols := headCols(heads, out, o.Mean)
	c.LinSkip = NewLinear(in, cols, !o.NoBias)
	if o.Beta {
		c.LinBeta = NewLinear(3*cols, 1, false)
	}
	return c
}

// Forward returns y [NumDst, H·F], with Mean [NumDst, F], for h [NumSrc, in], in the space of the
// block's destinations. It reads the features of the block's edges if the layer was made with their number.
// It stores no message; with features of edges it needs memory for a matrix [edges, H·F].
func (c *TransformerConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	var edge *Tensor
	if c != nil && c.LinEdge != nil {
		edge = f.EdgeInput(b, c.LinEdge.Weight.Cols)
	}
	return c.ForwardEdges(f, b, h, edge)
}

// ForwardEdges is Forward with any rows of the edges as e, edge [edges, EdgeDim] in the order of the block's edges, which gets a gradient;
// nil if the layer was made without EdgeDim.
func (c *TransformerConv) ForwardEdges(f *Fwd, b *Block, h, edge *Tensor) *Tensor {
	const op = "TransformerConv"
	switch {
	case c == nil:
		fail(op, "the layer is nil; create it with NewTransformer")
	case edge == nil && c.LinEdge != nil:
		fail(op, "the layer was made for edges with rows of %d columns and got none; give them, or make it without EdgeDim", c.LinEdge.Weight.Cols)
	case edge != nil && c.LinEdge == nil:
		fail(op, "the layer was made without EdgeDim and got rows of edges, %v; make it with EdgeDim %d, or give none", edge, edge.Cols())
	case edge != nil && (edge.Rows() != b.NumEdges() || edge.Cols() != c.LinEdge.Weight.Cols):
		fail(op, "the rows of edges are %v for a block of %d edges; give one row of %d columns for each edge", edge, b.NumEdges(), c.LinEdge.Weight.Cols)
	}
	own := f.Dst(b, h)
	query, key, value := c.LinQuery.Forward(f, own), c.LinKey.Forward(f, h), c.LinValue.Forward(f, h)
	width := query.Cols() / c.Heads
	score := f.EdgeHeadDot(b, query, key, c.Heads)
	if edge != nil {
		edge = c.LinEdge.Forward(f, edge)
		score = f.Add(score, f.EdgeHeadDot(edgesOf(b), query, edge, c.Heads).SetSpace(score.Space()))
	}
	att := attention(f, b, f.Scale(score, 1/math.Sqrt(float64(max(width, 1)))), c.Dropout)
	y := f.AggregateHeads(b, value, att)
	if edge != nil {
		y = f.Add(y, f.AggregateHeads(edgesOf(b), edge, att).SetSpace(y.Space()))
	}
	if c.Mean {
		y = f.HeadMean(y, c.Heads)
	}
	r := c.LinSkip.Forward(f, own)
	if c.LinBeta == nil {
		return f.Add(y, r)
	}
	// β·r + (1-β)·m = m + β·(r - m)
	beta := f.Sigmoid(c.LinBeta.Forward(f, f.Concat(y, r, f.Sub(y, r))))
	return f.Add(y, f.MulRows(f.Sub(r, y), beta))
}

// edgesOf is the block b with its edges as sources, one for each edge in their order: what operations read of sources, they then read of
// rows of edges, without a row for each edge of what they compute.
func edgesOf(b *Block) *Block {
	type key struct{}
	return b.Memo(key{}, func() any {
		indptr := b.Indptr()
		first, n := indptr[0], b.NumEdges()
		h := graphops.HostBlock{NumDst: b.NumDst, NumSrc: n, Indptr: indptr, Indices: make([]int32, n), Apart: true}
		if first != 0 {
			h.Indptr = make([]int64, len(indptr))
			for d, at := range indptr {
				h.Indptr[d] = at - first
			}
		}
		for e := range h.Indices {
			h.Indices[e] = int32(e)
		}
		if b.EdgePos() != nil || b.Graph != nil { // the edges have masks: see tensor.Fwd.MaskEdges
			h.EdgePos = make([]int64, n)
			for e := range h.EdgePos {
				h.EdgePos[e] = b.Pos(first + int64(e))
			}
		}
		return h.Block()
	}).(*Block)
}
