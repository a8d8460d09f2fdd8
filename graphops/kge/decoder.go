package kge

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Decoder scores triples by rows of entities and relations. Scores are logits: the higher, the more
// likely a triple.
//
// h [n,E], r [n,R] and t [n,E] are one row per triple, with the columns of Cols; e [N,E] are the rows of
// all entities. Methods panic with a *tensor.Error for shapes that do not fit, as operations do.
type Decoder interface {
	// Cols returns the columns of an entity's row and of a relation's row.
	Cols() (entity, relation int)
	// Score returns the score of each triple, [n,1].
	Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor
	// Tails returns the score of each query (h, r, ?) with each entity, [n,N]: column j of row i is
	// Score of (h_i, r_i, e_j).
	Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor
}

// HeadDecoder is a [Decoder] that also answers queries for heads without reciprocal relations.
type HeadDecoder interface {
	Decoder
	// Heads returns the score of each query (?, r, t) with each entity, [n,N]: column j of row i is
	// Score of (e_j, r_i, t_i).
	Heads(f *nn.Fwd, r, t, e *nn.Tensor) *nn.Tensor
}

// QueryDecoder is a [Decoder] whose score is the product of a query's row with the tail's: Score is the sum
// over columns of Query·t. Scores of several tails of a query then need one row of it ([Each]).
type QueryDecoder interface {
	Decoder
	// Query returns the rows of queries (h_i, r_i, ?), [n,E].
	Query(f *nn.Fwd, h, r *nn.Tensor) *nn.Tensor
}

// Each returns the scores of perQuery tails of each query as [n·perQuery,1]: those of query i are at
// i·perQuery and behind. q [n,E] are the queries' rows, e [N,E] the rows of all entities, and tails
// [n·perQuery] entities. No row is copied for a tail. tails is kept until Backward. It panics with a
// *tensor.Error if the shapes do not fit or a tail is no entity.
//
// Cost: 2·E flops for each tail, and twice as many for the gradients.
func Each(f *nn.Fwd, q, e *nn.Tensor, tails []int32, perQuery int) *nn.Tensor {
	const op = "Each"
	if n := q.Rows(); perQuery < 1 || len(tails) != n*perQuery || q.Cols() != e.Cols() {
		fail(op, "there are %d tails, %d for each query, of [%d,%d] queries and [%d,%d] entities", len(tails), perQuery, n, q.Cols(), e.Rows(), e.Cols())
	}
	b := graphops.HostBlock{NumDst: q.Rows(), NumSrc: e.Rows(), Indices: tails, Indptr: make([]int64, q.Rows()+1)}
	for i := range q.Rows() {
		b.Indptr[i+1] = int64((i + 1) * perQuery)
	}
	for _, t := range tails {
		if t < 0 || int(t) >= e.Rows() {
			fail(op, "entity %d is none of %d", t, e.Rows())
		}
	}
	return f.EdgeHeadDot(b.Block(), q, e, 1)
}

// DecoderNames are the names that [NewDecoder] knows.
const DecoderNames = "distmult, complex, transe, rotate or conve"

// NewDecoder returns a decoder by its name: distmult ([DistMult]), complex ([ComplEx]), transe
// ([TransE]), rotate ([RotatE]) or conve ([ConvE]). dim is the number of columns of an embedding, as the
// papers count them: an entity of ComplEx and RotatE has dim complex numbers, which are 2·dim columns.
func NewDecoder(name string, dim int, o Options) (Decoder, error) {
	if dim < 1 {
		return nil, fmt.Errorf("kge: an embedding of %d columns; it needs at least one", dim)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	switch name {
	case "distmult":
		return DistMult{dim}, nil
	case "complex":
		return ComplEx{dim}, nil
	case "transe":
		return TransE{dim, max(o.Norm, 1)}, nil
	case "rotate":
		return RotatE{dim, o.Margin}, nil
	case "conve":
		return NewConvE(dim, o)
	}
	return nil, fmt.Errorf("kge: there is no decoder %q; choose %s", name, DecoderNames)
}

var (
	_ HeadDecoder  = DistMult{}
	_ QueryDecoder = DistMult{}
)

// DistMult is Σ_c h_c·r_c·t_c: symmetric in head and tail (B. Yang et al., "Embedding entities and
// relations for learning and inference in knowledge bases", ICLR 2015, arXiv:1412.6575). Cost: 3·Dim
// flops for each triple.
type DistMult struct{ Dim int }

// Cols implements [Decoder].
func (d DistMult) Cols() (entity, relation int) { return d.Dim, d.Dim }

// Score implements [Decoder].
func (d DistMult) Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor { return f.RowDot(f.Mul(h, r), t) }

// Tails implements [Decoder].
func (d DistMult) Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor {
	return f.Linear(f.Mul(h, r), e, nil)
}

// Query implements [QueryDecoder].
func (d DistMult) Query(f *nn.Fwd, h, r *nn.Tensor) *nn.Tensor { return f.Mul(h, r) }

// Heads implements [HeadDecoder].
func (d DistMult) Heads(f *nn.Fwd, r, t, e *nn.Tensor) *nn.Tensor { return d.Tails(f, t, r, e) }

var (
	_ HeadDecoder  = ComplEx{}
	_ QueryDecoder = ComplEx{}
)

// ComplEx is Re Σ_c h_c·r_c·conj(t_c) with complex numbers (T. Trouillon et al., "Complex embeddings for
// simple link prediction", ICML 2016, arXiv:1606.06357). The first Dim columns of a row are the real
// parts, the others the imaginary parts. Cost: 8·Dim flops for each triple.
type ComplEx struct{ Dim int }

// Cols implements [Decoder].
func (d ComplEx) Cols() (entity, relation int) { return 2 * d.Dim, 2 * d.Dim }

// Score implements [Decoder].
func (d ComplEx) Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor {
	return f.RowDot(complexMul(f, h, r, false), t)
}

// Tails implements [Decoder].
func (d ComplEx) Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor {
	return f.Linear(complexMul(f, h, r, false), e, nil)
}

// Query implements [QueryDecoder].
func (d ComplEx) Query(f *nn.Fwd, h, r *nn.Tensor) *nn.Tensor { return complexMul(f, h, r, false) }

// Heads implements [HeadDecoder]: Re(h·r·conj(t)) is the real inner product of h and t·conj(r).
func (d ComplEx) Heads(f *nn.Fwd, r, t, e *nn.Tensor) *nn.Tensor {
	return f.Linear(complexMul(f, t, r, true), e, nil)
}

var _ HeadDecoder = TransE{}

// TransE is -‖h + r - t‖, where h and t are divided by their norms (A. Bordes et al., "Translating
// embeddings for modeling multi-relational data", NeurIPS 2013), as in torch_geometric.nn.TransE. Cost:
// 3·Dim flops for each triple; queries compare with all entities without a product of matrices.
type TransE struct{ Dim, Norm int }

// Cols implements [Decoder].
func (d TransE) Cols() (entity, relation int) { return d.Dim, d.Dim }

// Score implements [Decoder].
func (d TransE) Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor {
	return negDistance(f, f.Add(normalize(f, h, d.Norm), r), normalize(f, t, d.Norm), d.Norm)
}

// Tails implements [Decoder].
func (d TransE) Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor {
	return negDistances(f, f.Add(normalize(f, h, d.Norm), r), normalize(f, e, d.Norm), d.Norm)
}

// Heads implements [HeadDecoder].
func (d TransE) Heads(f *nn.Fwd, r, t, e *nn.Tensor) *nn.Tensor {
	return negDistances(f, f.Sub(normalize(f, t, d.Norm), r), normalize(f, e, d.Norm), d.Norm)
}

var _ HeadDecoder = RotatE{}

// RotatE is Margin - ‖h∘e^{iθ} - t‖, where a relation's row has Dim angles θ (Z. Sun et al., "RotatE:
// knowledge graph embedding by relational rotation in complex space", ICLR 2019, arXiv:1902.10197). The
// norm is that of all 2·Dim columns, as in torch_geometric.nn.RotatE; the paper adds up the moduli of the
// complex numbers. Columns are as in [ComplEx]. Cost: 14·Dim flops for each triple.
type RotatE struct {
	Dim    int
	Margin float64
}

// Cols implements [Decoder].
func (d RotatE) Cols() (entity, relation int) { return 2 * d.Dim, d.Dim }

// Score implements [Decoder].
func (d RotatE) Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor {
	return d.above(f, negDistance(f, complexMul(f, h, unit(f, r), false), t, 2))
}

// Tails implements [Decoder].
func (d RotatE) Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor {
	return d.above(f, negDistances(f, complexMul(f, h, unit(f, r), false), e, 2))
}

// Heads implements [HeadDecoder]: a rotation keeps distances, so ‖h∘r - t‖ is ‖h - t∘conj(r)‖.
func (d RotatE) Heads(f *nn.Fwd, r, t, e *nn.Tensor) *nn.Tensor {
	return d.above(f, negDistances(f, complexMul(f, t, unit(f, r), true), e, 2))
}

// above adds the margin.
func (d RotatE) above(f *nn.Fwd, x *nn.Tensor) *nn.Tensor {
	if d.Margin == 0 {
		return x
	}
	row := make([]float32, x.Cols())
	for i := range row {
		row[i] = float32(d.Margin)
	}
	return f.AddRow(x, f.Input(1, len(row), row, nil))
}

func fail(op, format string, args ...any) {
	panic(&tensor.Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}
