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
	Body nn.Model       `nn:"body"`
	Pool nn.Pooling     `nn:"pool,optional"`
	Head *nn.Perceptron `nn:"head"`

	dropout float64
}

// newModel makes a model whose body has the given number of output columns. width is that of the head's hidden layer, own the
// number of features of a graph itself, which the head reads beside the pooled row.
func newModel(body nn.Model, pool string, cols, width, own, out int, dropout float64) *Model {
	p, pooled := nn.NewPooling(pool, cols)
	head := nn.NewPerceptron(pooled+own, width, out)
	head.Dropout = dropout
	return &Model{Body: body, Pool: p, Head: head, dropout: dropout}
}

// NumLayers implements [nn.Model].
func (m *Model) NumLayers() int { return m.Body.NumLayers() }

// Layer implements [nn.Model].
func (m *Model) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return m.Body.Layer(f, i, b, h)
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
	f := rows.Fwd()
	h := m.Pool.Forward(f, u.groups, rows).SetSpace(&nn.Space{IDs: u.graphs})
	if own != nil {
		h = f.Concat(h, f.Input(len(u.graphs), len(own)/len(u.graphs), own, &nn.Space{IDs: u.graphs}))
	}
	return h
}

// answer returns the outputs for graphs of their pooled rows.
func (m *Model) answer(h *nn.Tensor) *nn.Tensor { return m.Head.Forward(h.Fwd(), h) }

// union is what a batch of graphs carries: its graphs, and the block that pools the rows of their nodes.
type union struct {
	graphs []int32
	groups *graphops.Block
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
	u.groups = graphops.Groups(at)
	return nodes, u
}
