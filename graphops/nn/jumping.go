package nn

import "math"

// Jumping knowledge makes a model's output of the outputs of all its layers instead of the last one's: a linear layer to Out
// columns over their concatenation ("cat"), their greatest elements ("max"), their sum weighed by the scores of an LSTM
// that reads them in both directions ("lstm"), or their plain sum ("sum"). ModelConfig.JK chooses it, and [Between] computes it.
//
// A layer before the last one hands on the outputs of the layers before it beside its own, because a batch's last block needs
// the rows of its destinations from all of them. So rows between layers have as many times Hidden columns as there are
// layers before.
//
// Source: K. Xu, C. Li, Y. Tian, T. Sonobe, K. Kawarabayashi, S. Jegelka, "Representation learning on graphs with jumping
// knowledge networks", ICML 2018, arXiv:1806.03536; as torch_geometric.nn.JumpingKnowledge, with its parameters' names.

// Jumps are the kinds of jumping knowledge.
var Jumps = []string{"cat", "max", "lstm", "sum"}

// headed reports whether a linear layer makes the output of the layers' outputs.
func (s ModelConfig) headed() bool { return s.JK != "" || s.Arrangement == Strong }

// Inner returns the configuration of a model's layers: with jumping knowledge, and in the arrangement "strong", all of them
// have Hidden columns, and a linear layer of [Between] makes Out of them. After a PreLinear the first one has Hidden columns in.
func (s ModelConfig) Inner() ModelConfig {
	if s.headed() {
		s.Out = s.Hidden
	}
	if s.PreLinear {
		s.In = s.Hidden
	}
	return s
}

// jump computes the result of layer i of layers from y, the layer's own output, and all [NumDst, i·hidden], the outputs of
// the layers before it at the same rows.
func (m *Between) jump(f *Fwd, i, layers int, all, y *Tensor) *Tensor {
	if y.Cols() != m.hidden {
		fail("Between", "layer %d has %d columns and the model %d hidden ones; with jumping knowledge make the layers by nn.Stack(s.Inner(), …)", i, y.Cols(), m.hidden)
	}
	if i < layers-1 || m.Jump == "cat" {
		if i > 0 {
			y = f.Concat(all, y)
		}
		if i < layers-1 {
			return y
		}
		return m.Lin.Forward(f, y)
	}
	xs := make([]*Tensor, 0, layers)
	for k := range i {
		xs = append(xs, f.Cols(all, k*m.hidden, (k+1)*m.hidden))
	}
	xs = append(xs, y)
	if m.Jump == "lstm" {
		return m.Lin.Forward(f, m.JK.Forward(f, xs))
	}
	y = xs[0]
	for _, x := range xs[1:] {
		if m.Jump == "sum" {
			y = f.Add(y, x)
		} else {
			y = f.Add(y, f.ReLU(f.Sub(x, y))) // the greater one; outputs of activations are at least -1
		}
	}
	return m.Lin.Forward(f, y)
}

// JumpingLSTM is the sum Σ α_l·x_l of the outputs of layers, with α = softmax over l of att·(h_l, g_l) for the states h and g of an
// LSTM that reads x_1, x_2, … and of one that reads them in reverse. Its parameters are lstm.weight_ih_l0, …, att.weight and
// att.bias, as in torch_geometric.nn.JumpingKnowledge.
type JumpingLSTM struct {
	LSTM *BiLSTM `nn:"lstm"`
	Att  *Linear `nn:"att"`
}

var _ Resetter = (*BiLSTM)(nil)

// BiLSTM are the parameters of a torch.nn.LSTM of one layer in both directions.
type BiLSTM struct {
	IH      *Param `nn:"weight_ih_l0"`
	HH      *Param `nn:"weight_hh_l0"`
	BiasIH  *Param `nn:"bias_ih_l0,vector"`
	BiasHH  *Param `nn:"bias_hh_l0,vector"`
	IHR     *Param `nn:"weight_ih_l0_reverse"`
	HHR     *Param `nn:"weight_hh_l0_reverse"`
	BiasIHR *Param `nn:"bias_ih_l0_reverse,vector"`
	BiasHHR *Param `nn:"bias_hh_l0_reverse,vector"`
}

// NewJumpingLSTM returns a JumpingLSTM for a number of layers of cols columns each; the states of each direction have
// layers·cols/2 columns.
func NewJumpingLSTM(cols, layers int) *JumpingLSTM {
	n := max(layers*cols/2, 1)
	return &JumpingLSTM{Att: NewLinear(2*n, 1, true), LSTM: &BiLSTM{
		IH: NewParam(4*n, cols), HH: NewParam(4*n, n), BiasIH: NewParam(1, 4*n), BiasHH: NewParam(1, 4*n),
		IHR: NewParam(4*n, cols), HHR: NewParam(4*n, n), BiasIHR: NewParam(1, 4*n), BiasHHR: NewParam(1, 4*n),
	}}
}

// Reset initialises the parameters from U(±1/√columns of a state), as torch.nn.LSTM; [Params.Init] calls it.
func (l *BiLSTM) Reset(init func(p *Param, bound float64)) {
	for _, p := range []*Param{l.IH, l.HH, l.BiasIH, l.BiasHH, l.IHR, l.HHR, l.BiasIHR, l.BiasHHR} {
		init(p, rootBound(l.HH.Cols))
	}
}

// rootBound is 1/√n.
func rootBound(n int) float64 { return 1 / math.Sqrt(float64(max(n, 1))) }

// Forward returns the sum [N, cols] of xs, the outputs of the layers, each [N, cols].
func (j *JumpingLSTM) Forward(f *Fwd, xs []*Tensor) *Tensor {
	l, n := j.LSTM, len(xs)
	ahead := states(f, xs, l.IH, l.HH, l.BiasIH, l.BiasHH, func(t int) int { return t })
	back := states(f, xs, l.IHR, l.HHR, l.BiasIHR, l.BiasHHR, func(t int) int { return n - 1 - t })
	scores := make([]*Tensor, n)
	for t := range xs {
		scores[t] = j.Att.Forward(f, f.Concat(ahead[t], back[t]))
	}
	alpha := f.Exp(f.LogSoftmax(f.Concat(scores...)))
	var sum *Tensor
	for t, x := range xs {
		x = f.MulRows(x, f.Cols(alpha, t, t+1))
		if sum != nil {
			x = f.Add(sum, x)
		}
		sum = x
	}
	return sum
}

// states returns the state of an LSTM after each x, which it reads in the given order.
func states(f *Fwd, xs []*Tensor, ih, hh, biasIH, biasHH *Param, order func(t int) int) []*Tensor {
	wi, wh, bi, bh := f.Param(ih), f.Param(hh), f.Param(biasIH), f.Param(biasHH)
	out := make([]*Tensor, len(xs))
	var h, c *Tensor // nil is 0
	for t := range xs {
		at := order(t)
		h, c = lstmStep(f, xs[at], h, c, wi, wh, bi, bh)
		out[at] = h
	}
	return out
}

// lstmStep returns the state and the cell of an LSTM after x; h and c, nil or those before it, of n columns each.
func lstmStep(f *Fwd, x, h, c, wi, wh, bi, bh *Tensor) (state, cell *Tensor) {
	n := wh.Cols()
	gates := f.Linear(x, wi, bi)
	if h == nil {
		gates = f.AddRow(gates, bh)
	} else {
		gates = f.Add(gates, f.Linear(h, wh, bh))
	}
	gate := func(k int) *Tensor { return f.Cols(gates, k*n, (k+1)*n) }
	cell = f.Mul(f.Sigmoid(gate(0)), f.Tanh(gate(2)))
	if c != nil {
		cell = f.Add(f.Mul(f.Sigmoid(gate(1)), c), cell)
	}
	return f.Mul(f.Sigmoid(gate(3)), f.Tanh(cell)), cell
}
