package nn

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
func (c *GRUCell) Forward(f *Fwd, x, h *Tensor) *Tensor {
	if c == nil {
		fail("GRUCell", "the layer is nil; create it with NewGRUCell")
	}
	n := c.WeightHH.Cols
	in, bias := f.Linear(x, f.Param(c.WeightIH), f.Param(c.BiasIH)), f.Param(c.BiasHH)
	gate := func(t *Tensor, k int) *Tensor { return f.Cols(t, k*n, (k+1)*n) }
	if h == nil {
		gates := f.Sigmoid(f.AddRow(f.Cols(in, 0, 2*n), f.Cols(bias, 0, 2*n)))
		fresh := f.Tanh(f.Add(gate(in, 2), f.MulCols(gate(gates, 0), gate(bias, 2))))
		return f.Sub(fresh, f.Mul(gate(gates, 1), fresh))
	}
	own := f.Linear(h, f.Param(c.WeightHH), bias)
	gates := f.Sigmoid(f.Add(f.Cols(in, 0, 2*n), f.Cols(own, 0, 2*n)))
	fresh := f.Tanh(f.Add(gate(in, 2), f.Mul(gate(gates, 0), gate(own, 2))))
	return f.Add(fresh, f.Mul(gate(gates, 1), f.Sub(h, fresh)))
}
