package nn

var (
	_ Conv     = (*GINConv)(nil)
	_ Resetter = (*GINConv)(nil)
)

// GINConv is the graph isomorphism layer
//
//	y_v = nn((1 + ε)·x_v + Σ_u x_u)
//
// over the in-edges u → v of a block's destinations. nn is any row-wise module, usually a
// [Perceptron].
//
// Parameters and semantics are those of torch_geometric.nn.GINConv: nn.… and eps [1], which is
// trained only with TrainEps. With sampled neighbours the sum is over the sampled ones, as in PyG.
// If x is sparse and nn a Perceptron, its first product precedes the sum, since both are linear; with any other nn a sparse x is
// converted to a dense one.
//
// Source: K. Xu, W. Hu, J. Leskovec, S. Jegelka, "How powerful are graph neural
// networks?", ICLR 2019, arXiv:1810.00826, equation 4.1.
type GINConv struct {
	NN  Module `nn:"nn"`
	Eps *Param `nn:"eps,vector"`

	Weighted bool

	start float32
}

// GINOptions are the options of a GINConv. The zero value is PyG's default.
type GINOptions struct {
	Eps      float32 // initial value of ε; 0 is PyG's default
	TrainEps bool    // train ε
	Weighted bool    // sum w_uv·x_u, if the graph's edges have weights; PyG's GINConv has none
}

// NewGIN returns a GINConv with the given module and ε = 0.
func NewGIN(nn Module) *GINConv { return NewGINWith(nn, GINOptions{}) }

// NewGINWith returns a GINConv with options.
func NewGINWith(nn Module, o GINOptions) *GINConv {
	eps := NewFixed(1, 1, o.Eps)
	eps.Fixed = !o.TrainEps
	return &GINConv{NN: nn, Eps: eps, Weighted: o.Weighted, start: o.Eps}
}

// Reset sets ε to its initial value.
func (c *GINConv) Reset(func(p *Param, bound float64)) { c.Eps.W[0] = c.start }

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations.
func (c *GINConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil || c.NN == nil {
		fail("GINConv", "the layer or its module is nil; create it with NewGIN")
	}
	if p, ok := c.NN.(*Perceptron); ok && h.Sparse() && len(p.Lins) > 0 {
		x := c.sum(f, b, p.Lins[0].Product(f, h))
		if bias := p.Lins[0].Bias; bias != nil {
			x = f.AddRow(x, f.Param(bias))
		}
		return p.after(f, x)
	}
	return c.NN.Forward(f, c.sum(f, b, h))
}

// sum is (1 + ε)·x_v + Σ_u x_u.
func (c *GINConv) sum(f *Fwd, b *Block, h *Tensor) *Tensor {
	// This precedes the aggregation, so its gradient comes after the aggregation's, which covers all rows and overwrites them.
	own := f.Dst(b, h)
	var weights []float32
	if c.Weighted {
		weights = b.Weights()
	}
	x := f.Add(f.AggregateWeighted(b, h, weights, Sum), own)
	if !c.Eps.Fixed || c.Eps.W[0] != 0 {
		x = f.Add(x, f.ScaleBy(own, f.Param(c.Eps)))
	}
	return x
}

var _ Module = (*Perceptron)(nil)

// Perceptron is a sequence of linear layers, with a normalisation (if any), ReLU and dropout
// between them. It works row by row. Its parameters are named as torch_geometric.nn.MLP's:
// lins.0.weight, lins.0.bias, norms.0.…, lins.1.…
type Perceptron struct {
	Lins    []*Linear `nn:"lins"`
	Norms   []Module  `nn:"norms,optional"` // nil, or one fewer than layers
	Dropout float64
}

// NewPerceptron returns a Perceptron of the given widths: [in, hidden, …, out].
func NewPerceptron(widths ...int) *Perceptron {
	if len(widths) < 2 {
		fail("NewPerceptron", "it needs at least the widths of its input and its output, but got %v", widths)
	}
	p := &Perceptron{}
	for i, in := range widths[:len(widths)-1] {
		p.Lins = append(p.Lins, NewLinear(in, widths[i+1], true))
	}
	return p
}

// Forward implements [Module].
func (p *Perceptron) Forward(f *Fwd, x *Tensor) *Tensor {
	if len(p.Lins) == 0 {
		return x
	}
	return p.after(f, p.Lins[0].Forward(f, x))
}

// after is what follows the first linear layer.
func (p *Perceptron) after(f *Fwd, x *Tensor) *Tensor {
	for i, l := range p.Lins[1:] {
		if p.Norms != nil {
			x = normReLU(f, p.Norms[i], x, p.Dropout)
		} else if x = f.ReLU(x); p.Dropout > 0 {
			x = f.Dropout(x, p.Dropout)
		}
		x = l.Forward(f, x)
	}
	return x
}
