package nn

import (
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

var _ Resetter = (*GRUCell)(nil)

// GRUCell is one step of a gated recurrent unit: from the inputs x [N, in] and the states h [N, H] it makes the new states,
// row by row,
//
//	h' = (1 - z)·n + z·h
//	r = σ(W_ir·x + b_ir + W_hr·h + b_hr)
//	z = σ(W_iz·x + b_iz + W_hz·h + b_hz)
//	n = tanh(W_in·x + b_in + r·(W_hn·h + b_hn))
//
// A row does not depend on the other rows. Its parameters are those of torch.nn.GRUCell: weight_ih [3·H, in], weight_hh [3·H, H],
// bias_ih [3·H] and bias_hh [3·H], each with the rows of r, of z and of n, in this order.
//
// Source: K. Cho, B. van Merriënboer, C. Gulcehre, D. Bahdanau, F. Bougares, H. Schwenk, Y. Bengio, "Learning phrase
// representations using RNN encoder-decoder for statistical machine translation", EMNLP 2014, doi:10.3115/v1/D14-1179; with r
// after the product with h, as PyTorch does.
type GRUCell struct {
	WeightIH *Param `nn:"weight_ih"`
	WeightHH *Param `nn:"weight_hh"`
	BiasIH   *Param `nn:"bias_ih,vector"`
	BiasHH   *Param `nn:"bias_hh,vector"`
}

// NewGRUCell returns a GRUCell for inputs of in columns and states of hidden columns.
func NewGRUCell(in, hidden int) *GRUCell {
	if in < 1 || hidden < 1 {
		fail("NewGRUCell", "the inputs have %d columns and the states %d; each needs at least one", in, hidden)
	}
	return &GRUCell{
		WeightIH: NewParam(3*hidden, in), WeightHH: NewParam(3*hidden, hidden),
		BiasIH: NewParam(1, 3*hidden), BiasHH: NewParam(1, 3*hidden),
	}
}

// Reset initialises the parameters from U(±1/√H), as torch.nn.GRUCell; [Params.Init] calls it.
func (c *GRUCell) Reset(init func(p *Param, bound float64)) {
	for _, p := range []*Param{c.WeightIH, c.WeightHH, c.BiasIH, c.BiasHH} {
		init(p, rootBound(c.WeightHH.Cols))
	}
}

// Forward returns the new states [N, H] for the inputs x [N, in] and the states h [N, H]; a nil h is zeros. The rows keep their space.
func (c *GRUCell) Forward(f *Fwd, x, h *Tensor) *Tensor { return c.ForwardParts(f, []*Tensor{x}, h) }

// ForwardParts is Forward for inputs whose columns are those of xs, one after another. They are not joined, so the gradient is computed
// for those alone that need one.
func (c *GRUCell) ForwardParts(f *Fwd, xs []*Tensor, h *Tensor) *Tensor {
	const op = "GRUCell"
	if c == nil {
		fail(op, "the layer is nil; create it with NewGRUCell")
	}
	n, cols := c.WeightHH.Cols, 0
	for _, x := range xs {
		cols += x.Cols()
	}
	if cols != c.WeightIH.Cols {
		fail(op, "the inputs have %d columns, and the layer was made for %d", cols, c.WeightIH.Cols)
	}
	in := f.Linear(xs[0], c.columns(f, 0, xs[0].Cols()), f.Param(c.BiasIH))
	at := xs[0].Cols()
	for _, x := range xs[1:] {
		in = f.Add(in, f.Linear(x, c.columns(f, at, at+x.Cols()), nil))
		at += x.Cols()
	}
	bias := f.Param(c.BiasHH)
	gate := func(t *Tensor, k int) *Tensor { return f.Cols(t, k*n, (k+1)*n) }
	if h == nil {
		gates := f.Sigmoid(f.AddRow(f.Cols(in, 0, 2*n), f.Cols(bias, 0, 2*n)))
		fresh := f.Tanh(f.Add(gate(in, 2), f.MulCols(gate(gates, 0), gate(bias, 2))))
		return f.Sub(fresh, f.Mul(gate(gates, 1), fresh))
	}
	own := f.Linear(h, f.Param(c.WeightHH), bias)
	if f.Backend().Name() == "cpu" {
		return gruGates(f, in, own, h)
	}
	gates := f.Sigmoid(f.Add(f.Cols(in, 0, 2*n), f.Cols(own, 0, 2*n)))
	fresh := f.Tanh(f.Add(gate(in, 2), f.Mul(gate(gates, 0), gate(own, 2))))
	return f.Add(fresh, f.Mul(gate(gates, 1), f.Sub(h, fresh)))
}

// columns are the columns [lo, hi) of the weight of the inputs.
func (c *GRUCell) columns(f *Fwd, lo, hi int) *Tensor {
	w := f.Param(c.WeightIH)
	if lo == 0 && hi == w.Cols() {
		return w
	}
	return f.Cols(w, lo, hi)
}

// gruGates computes the new states of the products in and own [N, 3·H] and the states h [N, H] in one pass over the rows.
func gruGates(f *Fwd, in, own, h *Tensor) *Tensor {
	const op = "GRUCell"
	rows, n, threads := h.Rows(), h.Cols(), f.Config().Threads
	if in.Rows() != rows {
		fail(op, "there are %d rows of inputs and %d states; give one for each", in.Rows(), rows)
	}
	var gates []float32 // r, z and n of each row, for the gradient
	if f.Recording() {
		gates = make([]float32, rows*3*n)
	}
	grain := max(1, 1<<12/n)
	y := f.CustomSet(op, []*Tensor{in, own, h}, rows, n, func(out []float32) {
		a, b, was := in.Data(), own.Data(), h.Data()
		parallel.ForEven(threads, rows, grain, func(lo, hi int) {
			g := make([]float32, 3*n)
			for i := lo; i < hi; i++ {
				if gates != nil {
					g = gates[i*3*n : (i+1)*3*n]
				}
				x, w := a[i*3*n:(i+1)*3*n], b[i*3*n:(i+1)*3*n]
				r, z, c := g[:n], g[n:2*n], g[2*n:]
				// σ(v) = 1/(1 + e^-v), and tanh v = 1 - 2/(1 + e^2v).
				simd.Plus(g[:2*n], x[:2*n], w[:2*n], false)
				simd.Scale(g[:2*n], g[:2*n], -1)
				simd.Exp(g[:2*n], g[:2*n], 0)
				for j, v := range g[:2*n] {
					g[j] = 1 / (1 + v)
				}
				simd.Times(c, r, w[2*n:], false)
				simd.Plus(c, c, x[2*n:], false)
				simd.Scale(c, c, 2)
				simd.Exp(c, c, 0)
				to, old := out[i*n:(i+1)*n], was[i*n:(i+1)*n]
				for j, v := range c {
					v = 1 - 2/(1+v)
					c[j] = v
					to[j] = v + float32(z[j]*(old[j]-v))
				}
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		b, was := own.Data(), h.Data()
		parallel.ForEven(threads, rows, grain, func(lo, hi int) {
			d := make([]float32, 3*n)
			for i := lo; i < hi; i++ {
				g, w := gates[i*3*n:(i+1)*3*n], b[i*3*n:(i+1)*3*n]
				r, z, c, old := g[:n], g[n:2*n], g[2*n:], was[i*n:(i+1)*n]
				for j, v := range dOut[i*n : (i+1)*n] {
					dc := v * (1 - z[j]) * (1 - float32(c[j]*c[j]))
					d[j] = dc * w[2*n+j] * r[j] * (1 - r[j])
					d[n+j] = v * (old[j] - c[j]) * z[j] * (1 - z[j])
					d[2*n+j] = dc
				}
				if to := dIn[0]; to != nil {
					copy(to[i*3*n:], d)
				}
				if to := dIn[1]; to != nil {
					copy(to[i*3*n:], d[:2*n])
					simd.Times(to[i*3*n+2*n:(i+1)*3*n], d[2*n:], r, false)
				}
				if to := dIn[2]; to != nil {
					simd.Times(to[i*n:(i+1)*n], dOut[i*n:(i+1)*n], z, false)
				}
			}
		})
	})
	return y.SetSpace(h.Space())
}
