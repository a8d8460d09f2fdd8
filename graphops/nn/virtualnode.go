package nn

var _ Resetter = (*VirtualNode)(nil)

// VirtualNode gives each graph of a batch one more node, which every node of the graph can read and write in one step. Between
// two layers, its row s_g is computed from the rows of the graph's nodes, and added to each of them:
//
//	s_g ← mlp_i(Σ_v x_v + s_g),  x_v ← x_v + s_g
//
// where mlp_i is two times a linear layer, a normalisation and ReLU, and then dropout. With Residual, s_g is added to the result of
// mlp_i. s_g is at first a learned row, which is 0 before training.
//
//	state := m.Virtual.Start(f, graphs, &nn.Space{IDs: ids})
//	for i := range layers {
//		h = m.Virtual.Spread(f, spread, h, state)
//		if i < layers-1 {
//			state = m.Virtual.Next(f, i, groups, h, state)
//		}
//		h = m.Layer(f, i, block, h)
//	}
//
// with the blocks graphops.Groups(offsets) and graphops.Spread(offsets) of the batch. This order is that of the networks of the Open
// Graph Benchmark. A graph without nodes has a state too, which nothing reads.
//
// Its parameters are embedding [1, cols], and mlps.0.lins.0.weight, …, mlps.0.norms.0.…, mlps.1.….
//
// Source: J. Gilmer, S. S. Schoenholz, P. F. Riley, O. Vinyals, G. E. Dahl, "Neural message passing for quantum chemistry", ICML
// 2017, arXiv:1704.01212, section 5.2; the form is that of W. Hu, M. Fey, M. Zitnik et al., "Open Graph Benchmark: datasets for
// machine learning on graphs", NeurIPS 2020, arXiv:2005.00687.
type VirtualNode struct {
	Embedding *Param          `nn:"embedding"`
	MLPs      []*VirtualLayer `nn:"mlps,optional"` // one between each layer and the next
	Dropout   float64
	Residual  bool
}

// VirtualLayer are the parameters by which a [VirtualNode] computes its rows once.
type VirtualLayer struct {
	Lins  []*Linear `nn:"lins"`           // 2
	Norms []Module  `nn:"norms,optional"` // 2, or nil
}

// VirtualNodeOptions are the options of a VirtualNode. The Open Graph Benchmark has Norm "batch".
type VirtualNodeOptions struct {
	Hidden   int     // columns within an mlp; 0 means 2·cols
	Norm     string  // "layer" or "batch"; "" means none
	Dropout  float64 // of the rows of the virtual nodes; 0 means none
	Residual bool    // add the row before the mlp to the row after it
}

// NewVirtualNode returns a VirtualNode for a network of layers layers, with rows of cols columns between them.
func NewVirtualNode(cols, layers int, o VirtualNodeOptions) *VirtualNode {
	const op = "NewVirtualNode"
	switch {
	case cols < 1 || layers < 1:
		fail(op, "there are %d layers with rows of %d columns; a network has at least 1 of each", layers, cols)
	case o.Hidden < 0:
		fail(op, "Hidden is %d; it is a number of columns, or 0 for twice those of a row", o.Hidden)
	case o.Norm != "" && o.Norm != "layer" && o.Norm != "batch":
		fail(op, "Norm is %q; choose layer or batch", o.Norm)
	case !(o.Dropout >= 0 && o.Dropout < 1):
		fail(op, "Dropout is %v; it must be at least 0 and below 1", o.Dropout)
	}
	if o.Hidden == 0 {
		o.Hidden = 2 * cols
	}
	v := &VirtualNode{Embedding: NewParam(1, cols), Dropout: o.Dropout, Residual: o.Residual}
	for range layers - 1 {
		l := &VirtualLayer{Lins: []*Linear{NewLinear(cols, o.Hidden, true), NewLinear(o.Hidden, cols, true)}}
		if o.Norm != "" {
			l.Norms = append(newNorms(o.Norm, 1, o.Hidden), newNorms(o.Norm, 1, cols)...)
		}
		v.MLPs = append(v.MLPs, l)
	}
	return v
}

// Reset sets the first row to 0; [Params.Init] calls it.
func (v *VirtualNode) Reset(init func(p *Param, bound float64)) { init(v.Embedding, 0) }

// Start returns the first rows of the virtual nodes [graphs, cols]. sp has the ids of the graphs, from which dropout draws; it may be
// nil without dropout.
func (v *VirtualNode) Start(f *Fwd, graphs int, sp *Space) *Tensor {
	return f.AddRow(f.Input(graphs, v.Embedding.Cols, make([]float32, max(graphs, 0)*v.Embedding.Cols), sp), f.Param(v.Embedding))
}

// Spread returns h [nodes, cols] with the row of its graph's virtual node added to each row, in the space of h. spread is the block of
// [graphops.Spread].
func (v *VirtualNode) Spread(f *Fwd, spread *Block, h, state *Tensor) *Tensor {
	return f.Add(h, f.Aggregate(spread, state, Sum).SetSpace(h.Space()))
}

// Next returns the rows of the virtual nodes after layer i, from the rows h [nodes, cols] of the nodes and the rows before, state.
// groups is the block of [graphops.Groups].
func (v *VirtualNode) Next(f *Fwd, i int, groups *Block, h, state *Tensor) *Tensor {
	if i < 0 || i >= len(v.MLPs) {
		fail("VirtualNode", "there is no mlp after layer %d; the network was said to have %d layers, with one between each and the next", i, len(v.MLPs)+1)
	}
	l := v.MLPs[i]
	y := f.Add(f.Aggregate(groups, h, Sum), state)
	for k, lin := range l.Lins {
		if y = lin.Forward(f, y); l.Norms != nil {
			y = normReLU(f, l.Norms[k], y, 0)
		} else {
			y = f.ReLU(y)
		}
	}
	if v.Dropout > 0 {
		y = f.Dropout(y, v.Dropout)
	}
	if v.Residual {
		y = f.Add(state, y)
	}
	return y
}
