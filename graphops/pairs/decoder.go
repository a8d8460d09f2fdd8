package pairs

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
)

// Decoder scores pairs of nodes by their embeddings.
//
// Score returns the score of each pair, [len(src),1]: a logit, the higher the more likely an edge.
// h [N,F] are embeddings, and src and dst are rows of h, which must not change until the pass ends.
// It panics with a *tensor.Error for shapes that do not fit, as operations do.
//
// The decoders of this package use tensor operations alone, so they compute on every backend.
type Decoder interface {
	Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor
}

// DecoderNames are the names that [NewDecoder] knows.
const DecoderNames = "dot, bilinear, mlp, hadamard or structural"

// NewDecoder returns a decoder of embeddings of dim columns by its name: dot ([Dot]), bilinear
// ([Bilinear]), mlp ([MLP]), hadamard (an MLP of products) or structural (a [Structural] with [Dot]).
// hidden is the width of an MLP's hidden layer; 0 means dim.
func NewDecoder(name string, dim, hidden int) (Decoder, error) {
	if dim < 1 || hidden < 0 {
		return nil, fmt.Errorf("pairs: a decoder of %d columns with %d hidden ones; there must be at least one column", dim, hidden)
	}
	if hidden == 0 {
		hidden = dim
	}
	switch name {
	case "dot", "":
		return Dot{}, nil
	case "bilinear":
		return NewBilinear(dim), nil
	case "mlp":
		return NewMLP(dim, hidden, false), nil
	case "hadamard":
		return NewMLP(dim, hidden, true), nil
	case "structural":
		return NewStructural(Dot{}, hidden), nil
	}
	return nil, fmt.Errorf("pairs: there is no decoder %q; choose %s", name, DecoderNames)
}

var _ GridDecoder = Dot{}

// Dot is the inner product of both embeddings, without parameters: the decoder of the graph
// auto-encoder (T. N. Kipf, M. Welling, "Variational graph auto-encoders", 2016, arXiv:1611.07308).
// Cost: 2·F flops for each pair.
type Dot struct{}

// Score implements [Decoder].
func (Dot) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	return f.RowDot(f.Gather(h, src), f.Gather(h, dst))
}

var (
	_ GridDecoder = (*Bilinear)(nil)
	_ nn.Resetter = (*Bilinear)(nil)
)

// Bilinear is h_u·W·h_vᵀ with a trained W [F,F], so that u → v and v → u may have different scores.
// Cost: 2·F² flops for each pair or, if there are fewer, for each embedding.
type Bilinear struct {
	Weight *nn.Param `nn:"weight"`
}

// NewBilinear returns a Bilinear of embeddings of dim columns. Its weights are drawn as torch.nn.Linear's.
func NewBilinear(dim int) *Bilinear { return &Bilinear{Weight: nn.NewParam(dim, dim)} }

// Score implements [Decoder].
func (b *Bilinear) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	w := f.Param(b.Weight)
	left := h
	if h.Rows() < len(src) {
		left = f.Gather(f.MatMul(left, w), src)
	} else {
		left = f.MatMul(f.Gather(left, src), w)
	}
	return f.RowDot(left, f.Gather(h, dst))
}

// Reset initialises the parameters; nn.Params.Init calls it.
func (b *Bilinear) Reset(init func(p *nn.Param, bound float64)) {
	(&nn.Linear{Weight: b.Weight}).Reset(init)
}

var _ Decoder = (*MLP)(nil)

// MLP is a network of two layers with ReLU over both embeddings side by side, [h_u, h_v], or, with
// Product, over their elementwise product, which is symmetric (the predictor of OGB's examples).
// Cost: 4·F·hidden flops for each pair, half of it with Product.
type MLP struct {
	Hidden  *nn.Linear `nn:"hidden"`
	Out     *nn.Linear `nn:"out"`
	Product bool
}

// NewMLP returns an MLP of embeddings of dim columns with a hidden layer.
func NewMLP(dim, hidden int, product bool) *MLP {
	in := 2 * dim
	if product {
		in = dim
	}
	return &MLP{Hidden: nn.NewLinear(in, hidden, true), Out: nn.NewLinear(hidden, 1, true), Product: product}
}

// Score implements [Decoder].
func (m *MLP) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	u, v := f.Gather(h, src), f.Gather(h, dst)
	if m.Product {
		return m.Out.Forward(f, f.ReLU(m.Hidden.Forward(f, f.Mul(u, v))))
	}
	return m.Out.Forward(f, f.ReLU(m.Hidden.Forward(f, f.Concat(u, v))))
}
