package nn

import "github.com/graphnb/graphnb/graphops/tensor"

// Composition is how a CompGCNConv combines the row of a source with that of a relation.
type Composition int

// The compositions.
const (
	Subtract  Composition = iota // x - z, as in TransE
	Multiply                     // x·z, elementwise, as in DistMult
	Correlate                    // circular correlation: Σ_i x_i·z_(i+k mod columns), as in HolE
)

func (c Composition) String() string {
	switch c {
	case Subtract:
		return "sub"
	case Multiply:
		return "mult"
	case Correlate:
		return "corr"
	}
	return "unknown composition"
}

var _ Resetter = (*CompGCNConv)(nil)

// CompGCNConv is the composition-based graph convolution, which has a row z_r for each relation:
//
//	y_v = (W_in·aggr{φ(x_u, z_r)} + W_out·aggr{φ(x_u, z_r)} + W_loop·φ(x_v, z_loop)) / 3 + b
//	z'_r = W_rel·z_r
//
// over the in-edges u → v of a block's destinations: x [NumSrc, in], z [relations, in], y [NumDst, out], z'
// [relations, out]. The first sum is over edges of a graph's own relations, the second over those of their
// reverses (see graphops.Graph.WithReverses); the mean of either is over v's in-edges of that direction. The
// authors' code weighs an edge by both degrees instead, which a sampled batch does not know.
//
// With sampled neighbours the mean is over the sampled ones. Edge weights and features are ignored.
//
// Source: S. Vashishth, S. Sanyal, V. Nitin, P. Talukdar, "Composition-based multi-relational graph convolutional
// networks", ICLR 2020, arXiv:1911.03082, equations 2 and 5.
type CompGCNConv struct {
	In   *Linear `nn:"w_in"`
	Out  *Linear `nn:"w_out"`
	Loop *Linear `nn:"w_loop"`
	Rel  *Linear `nn:"w_rel"`
	Self *Param  `nn:"loop_rel"` // z_loop [1, in]
	Bias *Param  `nn:"bias,vector,optional"`

	Composition Composition
	Aggr        Op
	// Reverse says which relations are reverses of others: [relations].
	Reverse []bool
}

// CompGCNOptions are the options of a CompGCNConv.
type CompGCNOptions struct {
	Composition Composition
	Aggr        Op   // Mean or Sum
	NoBias      bool // omit b
}

// NewCompGCN returns a CompGCNConv for relations of which some are reverses of others.
func NewCompGCN(in, out int, reverse []bool, o CompGCNOptions) *CompGCNConv {
	const op = "CompGCNConv"
	switch {
	case len(reverse) == 0:
		fail(op, "it was made for 0 relations; it needs at least one")
	case o.Aggr != Mean && o.Aggr != Sum:
		fail(op, "Aggr is %v; use Mean or Sum", o.Aggr)
	case o.Composition < Subtract || o.Composition > Correlate:
		fail(op, "there is no composition %d; use Subtract, Multiply or Correlate", int(o.Composition))
	}
	lin := func() *Linear { return NewLinear(in, out, false) }
	c := &CompGCNConv{
		In: lin(), Out: lin(), Loop: lin(), Rel: lin(), Self: NewParam(1, in),
		Composition: o.Composition, Aggr: o.Aggr, Reverse: reverse,
	}
	if !o.NoBias {
		c.Bias = NewParam(1, out)
	}
	return c
}

// Reset initialises the parameters as the authors do: Glorot's weights, a bias of zeros.
func (c *CompGCNConv) Reset(init func(p *Param, bound float64)) {
	for _, l := range []*Linear{c.In, c.Out, c.Loop, c.Rel} {
		init(l.Weight, glorot(l.Weight.Rows, l.Weight.Cols))
	}
	init(c.Self, glorot(1, c.Self.Cols))
	init(c.Bias, 0)
}

// Forward returns y [NumDst, out], in the space of the block's destinations, and z' [relations, out] for h
// [NumSrc, in] and z [relations, in]. It stores no message for an edge: compositions are linear in x, so it
// combines the sum of the sources of each destination and relation with the relation's row, in some matrices
// [pairs, in]. Correlate multiplies by a matrix [in, in] for each relation that the block has.
func (c *CompGCNConv) Forward(f *Fwd, b *Block, h, z *Tensor) (y, relations *Tensor) {
	const op = "CompGCNConv"
	if c == nil {
		fail(op, "the layer is nil; create it with NewCompGCN")
	}
	n, in := len(c.Reverse), c.Self.Cols
	switch {
	case h.Cols() != in:
		fail(op, "h is [%d,%d], but the layer was made for %d columns", h.Rows(), h.Cols(), in)
	case z.Rows() != n || z.Cols() != in:
		fail(op, "z is [%d,%d], but the layer was made for %d relations of %d columns", z.Rows(), z.Cols(), n, in)
	}
	own := f.Dst(b, h)
	pairs := pairsOf(op, b, n)
	weights, total := c.weights(b, pairs)
	m := c.compose(f, &pairs.typeGroups, f.AggregateWeighted(pairs.into, h, weights, Sum), z, total)
	loop := &typeGroups{starts: []int{0, b.NumDst}}
	self := c.Loop.Product(f, c.compose(f, loop, own, f.Param(c.Self), nil))
	y = self
	for _, reverse := range []bool{false, true} {
		lin := c.In
		if reverse {
			lin = c.Out
		}
		y = f.Add(y, lin.Product(f, f.AggregateWeighted(pairs.out, m, c.direction(pairs, reverse), Sum)))
	}
	y = f.Scale(y, 1.0/3).SetSpace(tensor.DstSpace(b))
	if c.Bias != nil {
		y = f.AddRow(y, f.Param(c.Bias))
	}
	return y, c.Rel.Product(f, z)
}

// weights returns the weight of each edge of pairs.into, and the sum of each pair.
func (c *CompGCNConv) weights(b *Block, p *dstPairs) (edges, total []float32) {
	edges, total = make([]float32, p.into.NumEdges()), make([]float32, p.into.NumDst)
	degree := [2][]int32{make([]int32, b.NumDst), make([]int32, b.NumDst)}
	each := func(do func(pair int, d int32, n *int32)) {
		for r, reverse := range c.Reverse {
			of := degree[0]
			if reverse {
				of = degree[1]
			}
			for i := p.starts[r]; i < p.starts[r+1]; i++ {
				do(i, p.rows[i], &of[p.rows[i]])
			}
		}
	}
	each(func(pair int, _ int32, n *int32) { *n += int32(p.into.InDegree(pair)) })
	each(func(pair int, _ int32, n *int32) {
		w := float32(1)
		if c.Aggr == Mean {
			w = 1 / float32(*n)
		}
		for e := p.into.Indptr()[pair]; e < p.into.Indptr()[pair+1]; e++ {
			edges[e] = w
		}
		total[pair] = w * float32(p.into.InDegree(pair))
	})
	return edges, total
}

// direction returns weights of the edges of pairs.out: 1 for pairs of relations of the direction, else 0.
func (c *CompGCNConv) direction(p *dstPairs, reverse bool) []float32 {
	of := make([]float32, len(p.rows))
	for r := range c.Reverse {
		if c.Reverse[r] == reverse {
			for i := p.starts[r]; i < p.starts[r+1]; i++ {
				of[i] = 1
			}
		}
	}
	w := make([]float32, p.out.NumEdges())
	for e, i := range p.out.Indices() {
		w[e] = of[i]
	}
	return w
}

// compose combines the rows x of each group with that group's row of z. total is, for each row, the sum of the
// weights of what it sums, nil for 1.
func (c *CompGCNConv) compose(f *Fwd, g *typeGroups, x, z *Tensor, total []float32) *Tensor {
	if c.Composition == Correlate {
		return g.stack(f, x, x.Cols(), func(r int, rows *Tensor) *Tensor {
			return f.MatMul(rows, circulant(f, f.Rows(z, r, r+1)))
		})
	}
	types := make([]int32, 0, x.Rows())
	for r := range len(g.starts) - 1 {
		for lo, hi := g.of(r); lo < hi; lo++ {
			types = append(types, int32(r))
		}
	}
	of := f.Gather(z, types)
	if c.Composition == Multiply {
		return f.Mul(x, of)
	}
	if total != nil {
		of = f.MulRows(of, f.Input(len(total), 1, total, nil))
	}
	return f.Sub(x, of)
}

// circulant returns the matrix [n, n] with element (i, k) = z[i+k mod n] of a row z [1, n].
func circulant(f *Fwd, z *Tensor) *Tensor {
	n := z.Cols()
	ids := make([]int32, 0, n*n)
	for i := range n {
		for k := range n {
			ids = append(ids, int32((i+k)%n))
		}
	}
	return f.Reshape(f.Gather(f.Reshape(z, n, 1), ids), n, n)
}
