package events

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// tgat embeds a node as of a time by layers of attention over its last k events, whose other nodes are embedded by the layer before as of
// the events:
//
//	z⁰_v(t) = x_v,  zⁱ_v(t) = B·relu(A·[attention of zⁱ⁻¹_v(t) over zⁱ⁻¹_u(t_e) and [φ(t - t_e), x_e], x_v] + a) + b
//
// where φ is a learned encoding of time, x_e are the features of an event and x_v those of a node: a zero if nodes have none, and no
// learned rows. So without any features it knows nodes by the times of their events alone, as in DyGLib.
//
// Source: D. Xu, C. Ruan, E. Korpeoglu, S. Kumar, K. Achan, "Inductive representation learning on temporal graphs", ICLR 2020,
// arXiv:2002.07962. The attention is that of [nn.TransformerConv], whose last term is linear in the node's own row.
type tgat struct {
	Nodes  *ofNodes        `nn:"nodes"`
	Time   *nn.TimeEncoder `nn:"time"`
	Layers []*tgatLayer    `nn:"layers"`
	Score  *pairScore      `nn:"score"`

	events ofEvents
	k      int
}

// tgatLayer is a layer of a tgat.
type tgatLayer struct {
	Conv *nn.TransformerConv `nn:"conv"`
	In   *nn.Linear          `nn:"in"`
	Out  *nn.Linear          `nn:"out"`
}

func newTGAT(s *stream, x *dataset.Matrix, trained int, o *Options) model {
	m := &tgat{
		Nodes: newOfNodes(x, trained, o.NodeRows), Time: nn.NewTimeEncoderWith(o.TimeDim, nn.TimeOptions{Geometric: true}), Score: newPairScore(o.Hidden),
		events: ofEvents{cols: s.cols, scale: o.TimeScale}, k: o.Neighbors,
	}
	in := max(1, m.Nodes.cols())
	for range o.Layers {
		m.Layers = append(m.Layers, &tgatLayer{
			nn.NewTransformerWith(in, o.Hidden/o.Heads, nn.TransformerOptions{Heads: o.Heads, Dropout: o.Dropout, EdgeDim: s.cols + o.TimeDim}),
			nn.NewLinear(o.Hidden+m.Nodes.cols(), o.Hidden, true), nn.NewLinear(o.Hidden, o.Hidden, true),
		})
		in = o.Hidden
	}
	return m
}

// NumLayers implements [nn.Model].
func (m *tgat) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A tgat computes by its views alone.
func (m *tgat) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *tgat) Reads() nn.Reads {
	return nn.Reads{Features: m.Nodes.x != nil, Edges: true, EdgeFeatures: true, Times: true}
}

// attended is what a tgat needs of the stream to embed some nodes.
type attended struct {
	ids    []int32   // the nodes of the first layer's rows
	layers []asOfRow // the first layer first
}

// asOfRow are the rows of a layer of a tgat: each is of a node before an event.
type asOfRow struct {
	block *graphops.Block
	edges ofEvents
}

// moment is a node as of a time, before an event.
type moment struct {
	node, before int32
	time         int64
}

// view implements [model].
func (m *tgat) view(q *questions) any { return embeddedOf(m, q) }

// pairs implements [embedder].
func (m *tgat) pairs() *pairScore { return m.Score }

// inputs implements [embedder].
func (m *tgat) inputs() int {
	n := 1
	for range m.Layers {
		n = min(n*m.k, inputsAtOnce)
	}
	return n
}

// around implements [embedder].
func (m *tgat) around(roots []int32, happened *temporal.Events, now int64) any {
	v := &attended{layers: make([]asOfRow, len(m.Layers))}
	rows := make([]moment, len(roots))
	for r, u := range roots {
		rows[r] = moment{u, int32(happened.Len()), now}
	}
	for l := len(m.Layers) - 1; l >= 0; l-- {
		below := newMoments(rows, l == 0)
		h := graphops.HostBlock{NumDst: len(rows), Indptr: make([]int64, len(rows)+1), AsOf: true}
		edges := m.events
		for r, of := range rows {
			for _, e := range happened.Before(of.node, int(of.before), m.k) {
				h.Indices = append(h.Indices, below.add(moment{happened.Other(e, of.node), e, happened.Time[e]}))
				h.EdgePos = append(h.EdgePos, edgeName(happened, e, of.node))
				edges.add(happened, e, of.time)
			}
			h.Indptr[r+1] = int64(len(h.Indices))
		}
		rows, h.NumSrc = below.all, len(below.all)
		h.SrcIDs = make([]int32, len(rows))
		for r, of := range rows {
			h.SrcIDs[r] = of.node
		}
		v.layers[l], v.ids = asOfRow{h.Block(), edges}, h.SrcIDs
	}
	return v
}

// moments gives moments rows, in the order in which they come: each distinct one, or one for each node, but all of the first ones.
type moments struct {
	all     []moment
	row     map[moment]int32
	ofNodes bool
}

func newMoments(first []moment, ofNodes bool) *moments {
	n := &moments{all: slices.Clone(first), row: make(map[moment]int32, len(first)), ofNodes: ofNodes}
	for r, of := range first {
		if _, ok := n.row[n.key(of)]; !ok {
			n.row[n.key(of)] = int32(r)
		}
	}
	return n
}

func (n *moments) key(of moment) moment {
	if n.ofNodes {
		return moment{node: of.node}
	}
	return of
}

// add returns the row of a moment.
func (n *moments) add(of moment) int32 {
	r, ok := n.row[n.key(of)]
	if !ok {
		r = int32(len(n.all))
		n.all, n.row[n.key(of)] = append(n.all, of), r
	}
	return r
}

// embed implements [embedder].
func (m *tgat) embed(f *nn.Fwd, around any) *nn.Tensor {
	v := around.(*attended)
	x := m.Nodes.rows(f, v.ids) // rows of a layer's destinations are the first of the layer before
	h := x
	if h == nil {
		h = f.Input(len(v.ids), 1, make([]float32, len(v.ids)), nil)
	}
	for i, l := range m.Layers {
		of := v.layers[i]
		spans, feats := of.edges.rows(f, m.Time)
		h = l.Conv.ForwardEdges(f, of.block, h, joined(f, spans, feats)).SetSpace(nil)
		if x != nil {
			x = f.Rows(x, 0, of.block.NumDst)
			h = f.Concat(h, x)
		}
		h = l.Out.Forward(f, f.ReLU(l.In.Forward(f, h)))
	}
	return h
}

// begin implements [model].
func (m *tgat) begin(bool) (state, error) { return newCounted(m, 0), nil }

// resumed implements [model].
func (m *tgat) resumed(_ *temporal.Events, taken int) (state, error) {
	return newCounted(m, taken), nil
}
