package nn

import "strings"

// Pooling makes one row of each group of rows, such as a graph's row of its nodes' rows: a convolution over a block of
// [graphops.Groups], from h [rows, in] to [groups, out]. An empty group gets zeros. The result has no space; set it, by
// [Tensor.SetSpace], to the ids of the groups if dropout follows.
//
//	pool, cols := nn.NewPooling("attention", 64)
//	y := pool.Forward(f, graphops.Groups(offsets), h).SetSpace(&nn.Space{IDs: graphs})
//
// A row does not depend on the other groups of the block, so graphs have the same rows in every batch.
type Pooling interface{ Conv }

var _ = []Pooling{(*Pool)(nil), (*AttentionPool)(nil), (*Set2Set)(nil)}

// poolings make a Pooling for rows of in columns, and say how many columns it returns.
var poolings = []struct {
	name string
	make func(in int) (Pooling, int)
}{
	{"sum", func(in int) (Pooling, int) { return NewPool("sum"), in }},
	{"mean", func(in int) (Pooling, int) { return NewPool("mean"), in }},
	{"max", func(in int) (Pooling, int) { return NewPool("max"), in }},
	{"attention", func(in int) (Pooling, int) { return NewAttentionPool(NewLinear(in, 1, true), nil), in }},
	{"set2set", func(in int) (Pooling, int) { return NewSet2Set(in, 3), 2 * in }},
}

// PoolingNames returns the names that [NewPooling] knows.
func PoolingNames() (names []string) {
	for _, p := range poolings {
		names = append(names, p.name)
	}
	return names
}

// NewPooling returns the pooling of a name for rows of in columns, and the number of columns of its rows: "sum", "mean", "max",
// "attention" (an [AttentionPool] whose gate is a linear layer) and "set2set" (a [Set2Set] of 3 steps, which returns 2·in columns).
// It panics with a [*tensor.Error] for any other name.
func NewPooling(name string, in int) (pool Pooling, out int) {
	if in < 1 {
		fail("NewPooling", "the rows have %d columns; they need at least 1", in)
	}
	for _, p := range poolings {
		if p.name == name {
			return p.make(in)
		}
	}
	fail("NewPooling", "there is no pooling %q; choose %s", name, strings.Join(PoolingNames(), ", "))
	return nil, 0
}

// Pool is the sum, the mean or the maximum, by column, of the rows of each group. It has no parameters.
type Pool struct{ Op Op }

// NewPool returns a Pool: "sum", "mean" or "max".
func NewPool(name string) *Pool {
	for _, op := range []Op{Sum, Mean, Max} {
		if op.String() == name {
			return &Pool{op}
		}
	}
	fail("NewPool", "there is no aggregation %q; choose sum, mean or max", name)
	return nil
}

// Forward returns y [groups, in] for h [rows, in].
func (p *Pool) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if p == nil {
		fail("Pool", "the layer is nil; create it with NewPool")
	}
	return f.Aggregate(b, h, p.Op)
}

// AttentionPool is the sum of each group's rows, weighed by scores of the rows:
//
//	y_g = Σ_r α_r · nn(x_r),  α = softmax over the rows r of the group of gate(x_r)
//
// The gate gives one score for each row, or one for each column of nn(x). Without NN, x itself is summed.
//
// Parameters and semantics are those of torch_geometric.nn.AttentionalAggregation: gate_nn.… and nn.… (that layer calls them
// gate_mlp.… and mlp.… if they are torch_geometric.nn.MLP).
//
// Source: Y. Li, D. Tarlow, M. Brockschmidt, R. Zemel, "Gated graph sequence neural networks", ICLR 2016, arXiv:1511.05493,
// equation 7, with a softmax for the sigmoid.
type AttentionPool struct {
	Gate Module `nn:"gate_nn"`
	NN   Module `nn:"nn,optional"` // nil: the rows are summed as they are
}

// NewAttentionPool returns an AttentionPool. gate returns 1 column, or as many as nn; nn may be nil.
func NewAttentionPool(gate, nn Module) *AttentionPool { return &AttentionPool{Gate: gate, NN: nn} }

// Forward returns y [groups, out] for h [rows, in].
func (p *AttentionPool) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "AttentionPool"
	if p == nil || p.Gate == nil {
		fail(op, "the layer or its gate is nil; create it with NewAttentionPool")
	}
	x := h
	if p.NN != nil {
		x = p.NN.Forward(f, h)
	}
	score := p.Gate.Forward(f, h)
	if score.Cols() != 1 && score.Cols() != x.Cols() {
		fail(op, "the gate returns %d columns for rows of %d; it must return 1 column, or as many", score.Cols(), x.Cols())
	}
	return f.AggregateHeads(b, x, f.EdgeSoftmax(b, f.GatherSrc(b, score)))
}

var _ Resetter = (*LSTM)(nil)

// LSTM are the parameters of a torch.nn.LSTM of one layer in one direction, with its names.
type LSTM struct {
	IH     *Param `nn:"weight_ih_l0"`
	HH     *Param `nn:"weight_hh_l0"`
	BiasIH *Param `nn:"bias_ih_l0,vector"`
	BiasHH *Param `nn:"bias_hh_l0,vector"`
}

// NewLSTM returns the parameters of an LSTM that reads in columns and has states of n.
func NewLSTM(in, n int) *LSTM {
	return &LSTM{IH: NewParam(4*n, in), HH: NewParam(4*n, n), BiasIH: NewParam(1, 4*n), BiasHH: NewParam(1, 4*n)}
}

// Reset initialises the parameters from U(±1/√columns of a state), as torch.nn.LSTM; [Params.Init] calls it.
func (l *LSTM) Reset(init func(p *Param, bound float64)) {
	for _, p := range []*Param{l.IH, l.HH, l.BiasIH, l.BiasHH} {
		init(p, rootBound(l.HH.Cols))
	}
}

// Step returns the state h and the cell c [N, n] after the LSTM read x [N, in]; h and c before the first step are nil, which
// means zeros.
func (l *LSTM) Step(f *Fwd, x, h, c *Tensor) (state, cell *Tensor) {
	return lstmStep(f, x, h, c, f.Param(l.IH), f.Param(l.HH), f.Param(l.BiasIH), f.Param(l.BiasHH))
}

// Set2Set reads each group's rows by attention from the state of an LSTM, in a number of steps:
//
//	q_t = LSTM(y_{t-1}),  r_t = Σ_r α_r·x_r,  α = softmax over the rows r of the group of x_r · q_t,  y_t = [q_t, r_t]
//
// from y_0 = 0. The last y has twice the columns of x. The order of the rows does not matter, but for rounding.
//
// Parameters and semantics are those of torch_geometric.nn.Set2Set: lstm.weight_ih_l0 [4·in, 2·in], lstm.weight_hh_l0 [4·in, in],
// lstm.bias_ih_l0 and lstm.bias_hh_l0. There, an empty group gets the states of the LSTM instead of zeros.
//
// Source: O. Vinyals, S. Bengio, M. Kudlur, "Order matters: sequence to sequence for sets", ICLR 2016, arXiv:1511.06391, section 4.2.
type Set2Set struct {
	LSTM  *LSTM `nn:"lstm"`
	Steps int
}

// NewSet2Set returns a Set2Set of the given number of steps for rows of in columns.
func NewSet2Set(in, steps int) *Set2Set {
	if steps < 1 {
		fail("NewSet2Set", "there are %d steps; at least 1 is needed", steps)
	}
	return &Set2Set{LSTM: NewLSTM(2*in, in), Steps: steps}
}

// Forward returns y [groups, 2·in] for h [rows, in].
func (p *Set2Set) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if p == nil || p.LSTM == nil {
		fail("Set2Set", "the layer is nil; create it with NewSet2Set")
	}
	y := f.Input(b.NumDst, 2*h.Cols(), make([]float32, b.NumDst*2*h.Cols()), nil)
	var q, c *Tensor
	for range p.Steps {
		q, c = p.LSTM.Step(f, y, q, c)
		y = f.Concat(q, f.AggregateHeads(b, h, f.EdgeSoftmax(b, f.EdgeHeadDot(b, q, h, 1))))
	}
	if full := filled(b); full != nil {
		y = f.MulRows(y, f.Input(b.NumDst, 1, full, nil))
	}
	return y
}

// filled is 1 for each destination with in-edges and 0 for the others, nil if all have some.
func filled(b *Block) []float32 {
	type key struct{}
	return b.Memo(key{}, func() any {
		full, indptr := make([]float32, b.NumDst), b.Indptr()
		empty := false
		for d := range full {
			if indptr[d+1] > indptr[d] {
				full[d] = 1
			} else {
				empty = true
			}
		}
		if !empty {
			return []float32(nil)
		}
		return full
	}).([]float32)
}
