package events

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// tgn is a temporal graph network: each node has a memory, a row that a GRU changes by the node's last event; attention over a
// node's last events gives its embedding; and a perceptron scores a pair of embeddings.
//
// A node's memory changes one step late, when the events after it are asked about: so the loss of those reaches the GRU.
//
// Source: E. Rossi, B. Chamberlain, F. Frasca, D. Eynard, F. Monti, M. Bronstein, "Temporal graph networks for deep learning on dynamic
// graphs", 2020, arXiv:2006.10637; the arrangement is that of PyTorch Geometric's example, with the identity as message function and
// the last message as aggregation.
type tgn struct {
	Memory *nn.Param           `nn:"memory"` // [nodes of training, hidden], fixed: the state within an epoch
	GRU    *nn.GRUCell         `nn:"gru"`
	Time   *nn.TimeEncoder     `nn:"time"`
	Conv   *nn.TransformerConv `nn:"conv"`
	Score  *pairScore          `nn:"score,optional"` // of models of pairs

	nodes int
	// stepOf returns the events [lo, hi) after which the memories change together, one of which is the given one.
	stepOf func(event int) (lo, hi int)
	cols   int             // of the events' features
	x      *dataset.Matrix // features of nodes; nil if there are none
	k      int             // events of a node that attention sees
	scale  float64         // the unit of spans of time
}

func newTGN(s *stream, x *dataset.Matrix, trained int, o *Options) *tgn {
	own := 0
	if x != nil {
		own = x.Cols
	}
	m := &tgn{
		Memory: nn.NewFixed(trained, o.Hidden, 0),
		GRU:    nn.NewGRUCell(2*o.Hidden+s.cols+o.TimeDim, o.Hidden),
		Time:   nn.NewTimeEncoder(o.TimeDim),
		Score:  newPairScore(o.Hidden),
		nodes:  s.Nodes, stepOf: s.stepOf, cols: s.cols, x: x, k: o.Neighbors, scale: o.TimeScale,
	}
	m.Conv = nn.NewTransformerWith(o.Hidden+own, o.Hidden/o.Heads, nn.TransformerOptions{Heads: o.Heads, Dropout: o.Dropout, EdgeDim: s.cols + o.TimeDim})
	return m
}

// NumLayers implements [nn.Model].
func (m *tgn) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A tgn computes by its [memories] alone.
func (m *tgn) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *tgn) Reads() nn.Reads {
	return nn.Reads{Features: m.x != nil, Edges: true, EdgeFeatures: true, Times: true}
}

// neighbourhood is what a tgn needs of the stream to embed some nodes as of a step.
type neighbourhood struct {
	nodes numbered // the nodes to embed, then those of their events
	block *graphops.Block
	spans []float32 // [edges]: from an event to the last event of its other node, in the unit of spans
	feats []float32 // [edges, cols]
	msgs  messages
}

// messages are the last events of some nodes before a step.
type messages struct {
	rows  []int32   // of the nodes that have one, among the nodes asked for
	other []int32   // [rows]: the other node of the event
	spans []float32 // [rows]: from the node's event before to this one
	feats []float32 // [rows, cols]
	order []int32   // [nodes]: the row of each node behind the new states, and those of the nodes without a message
	idle  []int32   // the rows of the nodes without a message
}

// messagesOf returns the last of the events that have happened for each of some nodes.
func (m *tgn) messagesOf(nodes []int32, happened *temporal.Events) messages {
	var g messages
	g.order = make([]int32, len(nodes))
	for r, v := range nodes {
		last := happened.Last(v, 1)
		if len(last) == 0 {
			g.idle = append(g.idle, int32(r))
			continue
		}
		e := last[0]
		g.order[r] = int32(len(g.rows))
		g.rows = append(g.rows, int32(r))
		g.other = append(g.other, happened.Other(e, v))
		// The memory knows the events before the step of e: the span is from the last one of these, or from the beginning of the stream.
		since := happened.Time[0]
		step, _ := m.stepOf(int(e))
		if known := happened.Before(v, step, 1); len(known) > 0 {
			since = happened.Time[known[0]]
		}
		g.spans = append(g.spans, m.span(since, happened.Time[e]))
		g.feats = appendFeatures(g.feats, happened, e)
	}
	for i, r := range g.idle {
		g.order[r] = int32(len(g.rows) + i)
	}
	return g
}

// span returns the time between two times in the unit of spans.
func (m *tgn) span(from, to int64) float32 { return float32(float64(to-from) / m.scale) }

// appendFeatures appends the features of an event, if events have some.
func appendFeatures(to []float32, of *temporal.Events, event int32) []float32 {
	if of.Features == nil {
		return to
	}
	n := len(to)
	to = append(to, make([]float32, of.Features.Cols)...)
	of.Features.CopyRow(to[n:], of.Edge[event])
	return to
}

// edgeName names an event of a node in the draws of dropout.
func edgeName(of *temporal.Events, event, node int32) int64 {
	side := int64(0)
	if of.Dst[event] == node {
		side = 1
	}
	return 2*int64(event) + side
}

// around returns the neighbourhood of roots, distinct nodes, after what has happened.
func (m *tgn) around(roots []int32, happened *temporal.Events) *neighbourhood {
	n := &neighbourhood{}
	for _, v := range roots {
		n.nodes.add(v)
	}
	indptr := make([]int64, len(roots)+1)
	var indices []int32
	var pos []int64
	for r, v := range roots {
		for _, e := range happened.Last(v, m.k) {
			u := happened.Other(e, v)
			indices = append(indices, n.nodes.add(u))
			pos = append(pos, edgeName(happened, e, v))
			latest := happened.Last(u, 1)[0]
			n.spans = append(n.spans, m.span(happened.Time[e], happened.Time[latest]))
			n.feats = appendFeatures(n.feats, happened, e)
		}
		indptr[r+1] = int64(len(indices))
	}
	n.block = graphops.HostBlock{
		NumDst: len(roots), NumSrc: len(n.nodes.ids), Indptr: indptr, Indices: indices, EdgePos: pos, SrcIDs: n.nodes.ids, AsOf: true,
	}.Block()
	n.msgs = m.messagesOf(n.nodes.ids, happened)
	return n
}

// states returns the memories of nodes as the messages change them [nodes, hidden].
func (m *tgn) states(f *nn.Fwd, nodes []int32, g messages, memory []float32) *nn.Tensor {
	width := m.Memory.Cols
	rowsOf := func(n int, node func(i int) int32) *nn.Tensor {
		out := make([]float32, n*width)
		for i := range n {
			copy(out[i*width:(i+1)*width], memory[int(node(i))*width:])
		}
		return f.Input(n, width, out, nil)
	}
	n := len(g.rows)
	own := rowsOf(n, func(i int) int32 { return nodes[g.rows[i]] })
	parts := []*nn.Tensor{own, rowsOf(n, func(i int) int32 { return g.other[i] })}
	if m.cols > 0 {
		parts = append(parts, f.Input(n, m.cols, g.feats, nil))
	}
	parts = append(parts, m.Time.Forward(f, f.Input(n, 1, g.spans, nil)))
	fresh := m.GRU.ForwardParts(f, parts, own)
	idle := rowsOf(len(g.idle), func(i int) int32 { return nodes[g.idle[i]] })
	return f.Gather(f.Stack(fresh, idle), g.order)
}

// embed returns the embeddings of the roots of a neighbourhood [roots, hidden].
func (m *tgn) embed(f *nn.Fwd, n *neighbourhood, memory []float32) *nn.Tensor {
	h := m.states(f, n.nodes.ids, n.msgs, memory)
	if m.x != nil {
		x := make([]float32, len(n.nodes.ids)*m.x.Cols)
		m.x.Gather(x, n.nodes.ids, f.Config().Threads)
		h = f.Concat(h, f.Input(len(n.nodes.ids), m.x.Cols, x, nil))
	}
	edge := m.Time.Forward(f, f.Input(len(n.spans), 1, n.spans, nil))
	if m.cols > 0 {
		edge = f.Concat(edge, f.Input(len(n.spans), m.cols, n.feats, nil))
	}
	return m.Conv.ForwardEdges(f, n.block, h, edge)
}

// tgnView is what a tgn needs of the stream to answer questions.
type tgnView struct {
	*neighbourhood
	from, to []int32 // the rows of each candidate's source and of the candidate
}

// view implements [model].
func (m *tgn) view(q *questions) any {
	r := q.roots()
	return &tgnView{m.around(r.ids, q.happened), r.from, r.to}
}

// begin implements [model]: all memories are zero. Those of training are the parameter, which checkpoints hold.
func (m *tgn) begin(training bool) (state, error) {
	if training {
		clear(m.Memory.W)
		return &memories{m, m.Memory.W, 0}, nil
	}
	return &memories{m, make([]float32, m.nodes*m.Memory.Cols), 0}, nil
}

// resumed implements [model].
func (m *tgn) resumed(_ *temporal.Events, taken int) (state, error) {
	return &memories{m, m.Memory.W, taken}, nil
}

// memories is the state of a tgn: the memory of each node.
type memories struct {
	*tgn
	rows []float32 // [nodes, hidden]
	seen int       // events that are in the rows
}

// taken implements [state].
func (m *memories) taken() int { return m.seen }

// scores implements [state].
func (m *memories) scores(f *nn.Fwd, _ *questions, view any) (*nn.Tensor, error) {
	v := view.(*tgnView)
	return m.Score.forward(f, m.embed(f, v.neighbourhood, m.rows), v.from, v.to), nil
}

// happen implements [state]: the memories of the nodes of the events change by the messages that were waiting. The ranks
// divide them.
func (m *memories) happen(now *temporal.Events, before int, w ranks) error {
	var nodes numbered
	for e := before; e < now.Len(); e++ {
		nodes.add(now.Src[e])
		nodes.add(now.Dst[e])
	}
	from, to := sample.Share(len(nodes.ids), w.rank, w.world)
	own, width := nodes.ids[from:to], m.Memory.Cols
	var fresh []float32
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	if err := nn.Try(func() {
		f.Reset(nn.Config{Threads: w.threads})
		fresh = slices.Clone(m.states(f, own, m.messagesOf(own, now.Head(before)), m.rows).Data())
	}); err != nil {
		return fmt.Errorf("events: the memories after event %d: %w", now.Len()-1, err)
	}
	for i, v := range w.gather(fresh) {
		m.rows[int(nodes.ids[i/width])*width+i%width] = v
	}
	m.seen += now.Len() - before
	return nil
}
