package kge

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
)

var _ Decoder = (*ConvE)(nil)

// ConvE makes one picture of head and relation, the head above the relation, and convolves it: with
// filters of 3×3, a linear layer back to Dim columns q, and the score q·t + b_t, where b_t is a number of
// the tail (T. Dettmers et al., "Convolutional 2D knowledge graph embeddings", AAAI 2018,
// arXiv:1707.01476). Batch norms and dropouts are those of the authors' program; a dropout of features drops
// whole maps, the outputs of a filter.
//
// An entity's row has Dim+1 columns, of which the last is b. ConvE answers queries for tails only: use
// reciprocal relations ([Reciprocal]). In training h needs a row space for the dropouts, such as the
// queries' numbers. The batch norms use the queries of a rank, so results depend on the number of ranks.
//
// Cost: 18·Channels·(2·Height-2)·(Dim/Height-2) flops for the filters and 2·Dim times their outputs for
// the linear layer, for each query.
type ConvE struct {
	Dim, Height, Width int
	Filters            *nn.Linear    `nn:"conv"` // [Channels, 9], row by row of a filter
	Linear             *nn.Linear    `nn:"fc"`   // its input has the channels of a position side by side
	Picture            *nn.BatchNorm `nn:"bn0"`
	Maps               *nn.BatchNorm `nn:"bn1"`
	Hidden             *nn.BatchNorm `nn:"bn2"`
	// Drops are the dropouts of the picture, of the filters' outputs and of q.
	Drops [3]float64
}

// NewConvE returns a ConvE of embeddings of dim columns. It returns an error if dim cannot be made a
// picture of at least 2 by 3.
func NewConvE(dim int, o Options) (*ConvE, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	h := o.Height
	if h == 0 {
		for i := 1; i*i <= dim; i++ {
			if dim%i == 0 {
				h = i
			}
		}
	}
	if h < 2 || dim%h != 0 || dim/h < 3 {
		return nil, fmt.Errorf("kge: ConvE cannot make a picture of %d rows of an embedding of %d columns; the rows divide the columns, and a picture is at least 2 by 3, such as 10 by 20 for 200", h, dim)
	}
	channels := o.Channels
	if channels == 0 {
		channels = 32
	}
	d := &ConvE{
		Dim: dim, Height: h, Width: dim / h,
		Filters: nn.NewLinear(9, channels, true),
		Picture: nn.NewBatchNorm(1), Maps: nn.NewBatchNorm(channels), Hidden: nn.NewBatchNorm(dim),
	}
	d.Linear = nn.NewLinear(d.places()*channels, dim, true)
	for i, p := range []float64{o.InputDropout, o.FeatureDropout, o.HiddenDropout} {
		switch {
		case p > 0:
			d.Drops[i] = p
		case p == 0:
			d.Drops[i] = [...]float64{0.2, 0.2, 0.3}[i]
		}
	}
	return d, nil
}

// places is the number of places of a filter on the picture.
func (d *ConvE) places() int { return (2*d.Height - 2) * (d.Width - 2) }

// Cols implements [Decoder].
func (d *ConvE) Cols() (entity, relation int) { return d.Dim + 1, d.Dim }

// Score implements [Decoder].
func (d *ConvE) Score(f *nn.Fwd, h, r, t *nn.Tensor) *nn.Tensor { return f.RowDot(d.query(f, h, r), t) }

// Tails implements [Decoder].
func (d *ConvE) Tails(f *nn.Fwd, h, r, e *nn.Tensor) *nn.Tensor {
	return f.Linear(d.query(f, h, r), e, nil)
}

// query is q and a column of ones, by which a tail's last column is added: [n,Dim+1].
func (d *ConvE) query(f *nn.Fwd, h, r *nn.Tensor) *nn.Tensor {
	n, channels := h.Rows(), d.Filters.Weight.Rows
	x := d.picture(f, h, r)
	x = f.Reshape(d.Picture.Forward(f, f.Reshape(x, n*2*d.Dim, 1)), n, 2*d.Dim)
	x = d.drop(f, x, h.Space(), 0)
	y := f.ReLU(d.Maps.Forward(f, d.Filters.Forward(f, d.patches(f, x))))
	y = f.Reshape(d.dropMaps(f, y, h.Space()), n, d.places()*channels)
	q := d.drop(f, d.Linear.Forward(f, y), h.Space(), 2)
	q = f.ReLU(d.Hidden.Forward(f, q))
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	return f.Concat(q, f.Input(n, 1, ones, nil))
}

func (d *ConvE) drop(f *nn.Fwd, x *nn.Tensor, sp *nn.Space, i int) *nn.Tensor {
	if d.Drops[i] == 0 {
		return x
	}
	return f.Dropout(x.SetSpace(sp), d.Drops[i])
}

// dropMaps drops whole maps of the filters' outputs y [n·places, Channels]: a filter's numbers at all places of
// a picture.
func (d *ConvE) dropMaps(f *nn.Fwd, y *nn.Tensor, sp *nn.Space) *nn.Tensor {
	if d.Drops[1] == 0 || !f.Train() {
		return y
	}
	places, channels := d.places(), y.Cols()
	n := y.Rows() / places
	ones, rows := make([]float32, n*channels), make([]int32, 0, y.Rows())
	for i := range ones {
		ones[i] = 1
	}
	for i := range int32(n) {
		for range places {
			rows = append(rows, i)
		}
	}
	return f.Mul(y, f.Gather(d.drop(f, f.Input(n, channels, ones, nil), sp, 1), rows))
}

// picture puts the relation's columns behind the head's, without the head's last one: [n,2·Dim].
func (d *ConvE) picture(f *nn.Fwd, h, r *nn.Tensor) *nn.Tensor {
	const op = "kge: ConvE"
	n, e, k := h.Rows(), d.Dim+1, d.Dim
	if h.Cols() != e || r.Cols() != k || r.Rows() != n {
		fail(op, "the heads are [%d,%d] and the relations [%d,%d]; they have %d and %d columns", n, h.Cols(), r.Rows(), r.Cols(), e, k)
	}
	x, y, threads := h.Data(), r.Data(), f.Config().Threads
	return f.Custom(op, []*nn.Tensor{h, r}, n, 2*k, func(out []float32) {
		parallel.For(threads, n, grain(2*k), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				copy(out[2*i*k:][:k], x[i*e:])
				copy(out[(2*i+1)*k:][:k], y[i*k:])
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		for i := range n {
			if dIn[0] != nil {
				copy(dIn[0][i*e:][:k], dOut[2*i*k:])
			}
			if dIn[1] != nil {
				copy(dIn[1][i*k:][:k], dOut[(2*i+1)*k:])
			}
		}
	})
}

// patches lists the nine numbers below a filter at each of its places: [n·places,9].
func (d *ConvE) patches(f *nn.Fwd, x *nn.Tensor) *nn.Tensor {
	n, w, size, places := x.Rows(), d.Width, 2*d.Dim, d.places()
	in, threads := x.Data(), f.Config().Threads
	// each calls visit with the first of three numbers of the picture, and of the three that copy them.
	each := func(visit func(from, to int)) {
		to := 0
		for top := range 2*d.Height - 2 {
			for left := range w - 2 {
				for row := range 3 {
					visit((top+row)*w+left, to)
					to += 3
				}
			}
		}
	}
	return f.Custom("kge: ConvE's patches", []*nn.Tensor{x}, n*places, 9, func(out []float32) {
		parallel.For(threads, n, grain(9*places), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				x, out := in[i*size:][:size], out[i*places*9:][:places*9]
				each(func(from, to int) { copy(out[to:to+3], x[from:]) })
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		parallel.For(threads, n, grain(9*places), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				dx, d := dIn[0][i*size:][:size], dOut[i*places*9:][:places*9]
				each(func(from, to int) {
					for j := range 3 {
						dx[from+j] += d[to+j]
					}
				})
			}
		})
	})
}
