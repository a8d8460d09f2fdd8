package events

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// mixer embeds a node by an MLP-Mixer over its last events, and by the nodes that it had events with:
//
//	z_v = W·[mean of the rows of Mixer(P·[φ(now - t_e), x_e] for the last k events e of v), mean of x_u over the events with u + x_v]
//
// where φ is a fixed encoding of time, x_e are the features of an event and x_u those of a node; nodes without features have learned rows.
// Slots of a node with fewer than k events are zeros before P.
//
// Source: W. Cong, S. Zhang, J. Kang, B. Yuan, H. Wu, X. Zhou, H. Tong, M. Mahdavi, "Do we really need complicated model architectures
// for temporal networks?", ICLR 2023, arXiv:2302.11636. The authors give nodes one-hot rows, which a linear layer makes learned rows. As
// DyGLib does, the last layer joins both parts before the scores, and the mean over nodes is one over at most 2,000 events.
type mixer struct {
	Nodes  *ofNodes        `nn:"nodes"`
	Time   *nn.TimeEncoder `nn:"time"`
	In     *nn.Linear      `nn:"in"`
	Mixers []*nn.Mixer     `nn:"mixers"`
	Out    *nn.Linear      `nn:"out"`
	Score  *pairScore      `nn:"score"`

	events ofEvents
	k      int
	window int64 // how far back the mean over nodes goes; 0 for no limit
}

func newMixer(s *stream, x *dataset.Matrix, trained int, o *Options) model {
	m := &mixer{
		Nodes:  newOfNodes(x, trained, o.NodeRows),
		Time:   nn.NewTimeEncoderWith(o.TimeDim, nn.TimeOptions{Fixed: true}),
		In:     nn.NewLinear(o.TimeDim+s.cols, o.Hidden, true),
		Score:  newPairScore(o.Hidden),
		events: ofEvents{cols: s.cols, scale: o.TimeScale}, k: o.Neighbors, window: s.window,
	}
	for range o.Layers {
		m.Mixers = append(m.Mixers, nn.NewMixer(o.Neighbors, o.Hidden, nn.MixerOptions{Dropout: o.Dropout}))
	}
	m.Out = nn.NewLinear(o.Hidden+m.Nodes.cols(), o.Hidden, true)
	return m
}

// NumLayers implements [nn.Model].
func (m *mixer) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A mixer computes by its views alone.
func (m *mixer) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *mixer) Reads() nn.Reads {
	return nn.Reads{Features: m.Nodes.x != nil, Edges: true, EdgeFeatures: true, Times: true}
}

// mixed is what a mixer needs of the stream to embed some nodes, its roots.
type mixed struct {
	slots ofEvents  // k of each root, the latest last
	used  []float32 // [roots·k] 1 for a slot with an event
	names []int32   // [roots·k] of the slots, for the draws of dropout
	ids   []int32   // the roots, then the other nodes of their events
	means *graphops.Block
	items *graphops.Block // the slots of each root
}

// view implements [model].
func (m *mixer) view(q *questions) any { return embeddedOf(m, q) }

// pairs implements [embedder].
func (m *mixer) pairs() *pairScore { return m.Score }

// inputs implements [embedder].
func (m *mixer) inputs() int { return m.k }

// around implements [embedder].
func (m *mixer) around(roots []int32, happened *temporal.Events, now int64) any {
	v := &mixed{slots: m.events}
	nodes := numbered{row: make(map[int32]int32, len(roots))}
	indptr, starts := make([]int64, len(roots)+1), make([]int32, len(roots)+1)
	var indices []int32
	for _, u := range roots {
		nodes.add(u)
	}
	for r, u := range roots {
		all := happened.Last(u, max(m.k, remembered))
		last := all[max(0, len(all)-m.k):]
		for s := range m.k {
			v.names = append(v.names, u*int32(m.k)+int32(s))
			if s < m.k-len(last) {
				v.slots.empty()
				v.used = append(v.used, 0)
				continue
			}
			v.slots.add(happened, last[s-m.k+len(last)], now)
			v.used = append(v.used, 1)
		}
		for _, e := range all[max(0, len(all)-remembered):] {
			if m.Nodes.cols() > 0 && (m.window == 0 || happened.Time[e] >= temporal.Plus(now, -m.window)) {
				indices = append(indices, nodes.add(happened.Other(e, u)))
			}
		}
		indptr[r+1], starts[r+1] = int64(len(indices)), int32((r+1)*m.k)
	}
	v.ids = nodes.ids
	v.means = graphops.HostBlock{NumDst: len(roots), NumSrc: len(v.ids), Indptr: indptr, Indices: indices, SrcIDs: v.ids, AsOf: true}.Block()
	v.items = graphops.Groups(starts)
	return v
}

// embed implements [embedder].
func (m *mixer) embed(f *nn.Fwd, around any) *nn.Tensor {
	v := around.(*mixed)
	spans, feats := v.slots.rows(f, m.Time)
	h := m.In.Forward(f, joined(f, f.MulRows(spans, f.Input(len(v.used), 1, v.used, nil)), feats))
	h.SetSpace(&nn.Space{IDs: v.names})
	for _, mix := range m.Mixers {
		h = mix.Forward(f, h)
	}
	h = f.Aggregate(v.items, h, nn.Mean)
	if x := m.Nodes.rows(f, v.ids); x != nil {
		h = f.Concat(h, f.Add(f.Aggregate(v.means, x, nn.Mean), f.Dst(v.means, x)))
	}
	return m.Out.Forward(f, h)
}

// begin implements [model].
func (m *mixer) begin(bool) (state, error) { return newCounted(m, 0), nil }

// resumed implements [model].
func (m *mixer) resumed(_ *temporal.Events, taken int) (state, error) {
	return newCounted(m, taken), nil
}
