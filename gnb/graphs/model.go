package graphs

import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

var _ nn.Model = (*Model)(nil)

// Model computes rows of nodes by Body, pools those of each graph by Pool, and makes the outputs for the graph by Head. Its
// parameters have the prefixes body., pool. and head.
type Model struct {
	Body    nn.Model        `nn:"body"`
	Virtual *nn.VirtualNode `nn:"virtual,optional"` // nil: none
	Pool    nn.Pooling      `nn:"pool,optional"`
	Head    *nn.Perceptron  `nn:"head"`

	signed []int // features whose signs are drawn in training

	// Of the pass: its graphs, and the rows of their virtual nodes.
	at    *union
	state *nn.Tensor
}

// newModel makes a model around a body with o.Hidden output columns, for graphs with own features each.
func newModel(body nn.Model, o *recorded, norm string, own int) *Model {
	p, pooled := nn.NewPooling(o.Pool, o.Hidden)
	m := &Model{Body: body, Pool: p, signed: o.Signed, Head: nn.NewPerceptron(pooled+own, o.Hidden, o.Out)}
	m.Head.Dropout = o.Dropout
	if n := body.NumLayers(); o.VirtualNode && n > 1 { // rows have Hidden columns from the second layer on
		m.Virtual = nn.NewVirtualNode(o.Hidden, n-1, nn.VirtualNodeOptions{Norm: norm, Dropout: o.Dropout, Residual: o.Residual})
	}
	return m
}

// NumLayers implements [nn.Model].
func (m *Model) NumLayers() int { return m.Body.NumLayers() }

// Layer implements [nn.Model].
func (m *Model) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if i == 0 && m.signed != nil && f.Train() {
		h = m.flip(f, h)
	}
	if v := m.Virtual; v != nil && i > 0 {
		if i == 1 {
			m.state = v.Start(f, len(m.at.graphs), &nn.Space{IDs: m.at.graphs})
		}
		h = v.Spread(f, m.at.spread(), h, m.state)
		if i < m.NumLayers()-1 {
			m.state = v.Next(f, i-1, m.at.groups, h, m.state)
		}
	}
	return m.Body.Layer(f, i, b, h)
}

// flip multiplies the signed features of each graph's nodes by 1 or -1. A mask of dropout draws the signs: it gives 0 or 2.
func (m *Model) flip(f *nn.Fwd, h *nn.Tensor) *nn.Tensor {
	n, cols := len(m.at.graphs), h.Cols()
	ones, times, plus := make([]float32, n*cols), make([]float32, cols), make([]float32, cols)
	for i := range ones {
		ones[i] = 1
	}
	for c := range plus {
		plus[c] = 1
	}
	for _, c := range m.signed {
		times[c], plus[c] = 1, -1
	}
	signs := f.Dropout(f.Input(n, cols, ones, &nn.Space{IDs: m.at.graphs}), 0.5)
	signs = f.AddRow(f.MulCols(signs, f.Input(1, cols, times, nil)), f.Input(1, cols, plus, nil))
	return f.Mul(h, f.Aggregate(m.at.spread(), signs, nn.Sum).SetSpace(h.Space()))
}

// Reads implements [nn.Reader]: what the body reads, everything if it does not say.
func (m *Model) Reads() nn.Reads {
	if r, ok := m.Body.(nn.Reader); ok {
		return r.Reads()
	}
	return nn.Reads{Features: true, Edges: true, Weights: true, EdgeFeatures: true, Types: true}
}

// pooled returns the rows of graphs of rows of nodes, with the graphs' own features own [graphs, _] beside them, or nil.
func (m *Model) pooled(rows *nn.Tensor, u *union, own []float32) *nn.Tensor {
	if own == nil {
		return m.pooledWith(rows, u, nil)
	}
	return m.pooledWith(rows, u, rows.Fwd().Input(len(u.graphs), len(own)/len(u.graphs), own, &nn.Space{IDs: u.graphs}))
}

// pooledWith is pooled with the graphs' own features as a tensor.
func (m *Model) pooledWith(rows *nn.Tensor, u *union, own *nn.Tensor) *nn.Tensor {
	f := rows.Fwd()
	h := m.Pool.Forward(f, u.groups, rows).SetSpace(&nn.Space{IDs: u.graphs})
	if own != nil {
		h = f.Concat(h, own.SetSpace(h.Space()))
	}
	return h
}

// answer returns the outputs for graphs of their pooled rows.
func (m *Model) answer(h *nn.Tensor) *nn.Tensor { return m.Head.Forward(h.Fwd(), h) }

// Graphs computes the outputs for graphs of the rows x of their nodes, in an evaluation: those of graph g are the rows offsets[g] to
// offsets[g+1]-1, all edges are in b, and own are the features of the graphs, row by row, or nil. Numbers are standardised, as the
// network computes them. The model keeps the batch until the next call, so it is for one goroutine.
func (m *Model) Graphs(f *nn.Fwd, b *nn.Block, offsets []int32, x *nn.Tensor, own []float32) *nn.Tensor {
	u := &union{graphs: make([]int32, len(offsets)-1), offsets: offsets, groups: graphops.Groups(offsets)}
	for g := range u.graphs {
		u.graphs[g] = int32(g)
	}
	m.at = u
	for i := range m.NumLayers() {
		x = m.Layer(f, i, b, x)
	}
	if len(own) == 0 {
		own = nil
	}
	return m.answer(m.pooled(x, u, own))
}

// union is what a batch of graphs carries: its graphs, and the block that pools the rows of their nodes.
type union struct {
	graphs  []int32
	offsets []int32
	groups  *graphops.Block
	back    *graphops.Block
}

// spread returns the block that gives each node the row of its graph.
func (u *union) spread() *graphops.Block {
	if u.back == nil {
		u.back = graphops.Spread(u.offsets)
	}
	return u.back
}

// unionOf returns the nodes of graphs and their union.
func unionOf(ds *gnb.Dataset, graphs []int32) (nodes []int32, u *union) {
	u = &union{graphs: graphs}
	at := make([]int32, 1, len(graphs)+1)
	for _, g := range graphs {
		lo, hi := ds.GraphSpan(g)
		at = append(at, at[len(at)-1]+hi-lo)
	}
	nodes = make([]int32, 0, at[len(at)-1])
	for _, g := range graphs {
		for v, hi := ds.GraphSpan(g); v < hi; v++ {
			nodes = append(nodes, v)
		}
	}
	u.offsets, u.groups = at, graphops.Groups(at)
	return nodes, u
}
