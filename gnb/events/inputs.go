package events

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// ofNodes are the rows of nodes that hold for all times: their features, and learned rows.
type ofNodes struct {
	// Learned [nodes of training, columns] begins with zeros, as what is known of a node that training does not have; nil if there are none.
	Learned *nn.Param `nn:"learned,optional"`

	x *dataset.Matrix // features; nil if there are none
}

func newOfNodes(x *dataset.Matrix, trained, learned int) *ofNodes {
	n := &ofNodes{x: x}
	if learned > 0 {
		n.Learned = nn.NewParam(trained, learned)
	}
	return n
}

// Reset implements [nn.Resetter].
func (n *ofNodes) Reset(init func(p *nn.Param, bound float64)) { init(n.Learned, 0) }

// cols is the number of columns of rows.
func (n *ofNodes) cols() (cols int) {
	if n.x != nil {
		cols = n.x.Cols
	}
	if n.Learned != nil {
		cols += n.Learned.Cols
	}
	return cols
}

// rows returns the rows of some nodes [ids, cols], nil if there are no columns.
func (n *ofNodes) rows(f *nn.Fwd, ids []int32) *nn.Tensor {
	var parts []*nn.Tensor
	if n.x != nil {
		x := make([]float32, len(ids)*n.x.Cols)
		n.x.Gather(x, ids, f.Config().Threads)
		parts = append(parts, f.Input(len(ids), n.x.Cols, x, nil))
	}
	if n.Learned != nil {
		at, known, all := make([]int32, len(ids)), make([]float32, len(ids)), true
		for i, v := range ids {
			if int(v) < n.Learned.Rows {
				at[i], known[i] = v, 1
			} else {
				all = false
			}
		}
		h := f.Gather(f.Param(n.Learned), at)
		if !all {
			h = f.MulRows(h, f.Input(len(ids), 1, known, nil))
		}
		parts = append(parts, h)
	}
	return joined(f, parts...)
}

// joined returns the columns of tensors side by side, without those that are nil; nil if all are.
func joined(f *nn.Fwd, parts ...*nn.Tensor) *nn.Tensor {
	var some []*nn.Tensor
	for _, p := range parts {
		if p != nil {
			some = append(some, p)
		}
	}
	if len(some) < 2 {
		return append(some, nil)[0]
	}
	return f.Concat(some...)
}

// ofEvents are the columns of some events as a model takes them: how long ago each was, and its features.
type ofEvents struct {
	cols  int       // features of an event
	scale float64   // the unit of spans of time
	spans []float32 // [events]
	feats []float32 // [events, cols]
}

// add appends an event of those that have happened, as of a time.
func (l *ofEvents) add(happened *temporal.Events, event int32, now int64) {
	l.spans = append(l.spans, float32(float64(now-happened.Time[event])/l.scale))
	l.feats = appendFeatures(l.feats, happened, event)
}

// empty appends a row for no event.
func (l *ofEvents) empty() {
	l.spans = append(l.spans, 0)
	l.feats = append(l.feats, make([]float32, l.cols)...)
}

// rows returns the encoded spans and the features [events, …], by columns side by side.
func (l *ofEvents) rows(f *nn.Fwd, time *nn.TimeEncoder) (spans, feats *nn.Tensor) {
	if l.cols > 0 {
		feats = f.Input(len(l.spans), l.cols, l.feats, nil)
	}
	return time.Forward(f, f.Input(len(l.spans), 1, l.spans, nil)), feats
}

// rooted are the nodes of questions, each once, and the rows among them of each candidate's source and of the candidate.
type rooted struct {
	numbered
	from, to []int32
}

// roots returns the nodes of questions.
func (q *questions) roots() (r rooted) {
	for i, u := range q.src {
		from := r.add(u)
		for _, c := range q.cands[q.starts[i]:q.starts[i+1]] {
			r.from, r.to = append(r.from, from), append(r.to, r.add(c))
		}
	}
	return r
}

// embedder is a model whose scores are of pairs of embeddings, which are a function of the events before the step and of the weights: there is
// no state to keep.
type embedder interface {
	model
	// around returns what the model takes of the stream to embed distinct nodes as of a time, when some events have happened.
	around(nodes []int32, happened *temporal.Events, now int64) any
	// embed returns the embeddings of the nodes of an around [nodes, columns]. Those of a node are the same whatever the other nodes are.
	embed(f *nn.Fwd, around any) *nn.Tensor
	// inputs is the most rows that a node has among the model's inputs.
	inputs() int
	pairs() *pairScore
}

// inputsAtOnce is the number of rows of inputs with which nodes are embedded together where nothing is learned: about those of a step of training,
// so that answers take no more memory than that.
const inputsAtOnce = 1 << 14

// embedded is what an embedder takes of the stream to answer questions.
type embedded struct {
	rooted
	around any // of all roots in training; nil else, where some roots at a time are embedded
}

// embeddedOf returns the view of questions. Those of training have names.
func embeddedOf(m embedder, q *questions) *embedded {
	v := &embedded{rooted: q.roots()}
	if len(q.names) == len(q.cands) {
		v.around = m.around(v.ids, q.happened, q.now)
	}
	return v
}

// counted is the state of an embedder: how many events have happened.
type counted struct {
	embedder
	seen   int
	atOnce int // rows of inputs
}

func newCounted(m embedder, taken int) *counted { return &counted{m, taken, inputsAtOnce} }

// taken implements [state].
func (c *counted) taken() int { return c.seen }

// scores implements [state].
func (c *counted) scores(f *nn.Fwd, q *questions, view any) (*nn.Tensor, error) {
	v := view.(*embedded)
	if v.around != nil {
		return c.pairs().forward(f, c.embed(f, v.around), v.from, v.to), nil
	}
	part := nn.NewFwd(nn.Config{})
	defer part.Close()
	var rows []float32
	cols := 0
	for ids := range slices.Chunk(v.ids, max(1, c.atOnce/c.inputs())) {
		part.Reset(nn.Config{Threads: f.Config().Threads})
		z := c.embed(part, c.around(ids, q.happened, q.now))
		rows, cols = append(rows, z.Data()...), z.Cols()
	}
	return c.pairs().forward(f, f.Input(len(v.ids), cols, rows, nil), v.from, v.to), nil
}

// happen implements [state].
func (c *counted) happen(now *temporal.Events, before int, _ ranks) error {
	if before != c.seen {
		return fmt.Errorf("events: the events from %d on happen after %d were known", before, c.seen)
	}
	c.seen = now.Len()
	return nil
}
