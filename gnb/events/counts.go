package events

import (
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/parallel"
)

// counts scores a pair of nodes by a perceptron on what the stream says about them: how often and how recently each of the two had events,
// and the two with each other, in which direction. With walks it also takes how the walks of the two nodes through earlier events meet. None of
// that is learned, so it is a function of the stream alone.
type counts struct {
	In  *nn.Linear `nn:"in"`
	Mid *nn.Linear `nn:"mid"`
	Out *nn.Linear `nn:"out"`

	s       *stream
	decays  []float64 // the times after which an event counts 1/e
	dropout float64
	walks   []temporal.WalkOptions // none of counts

	meetings sync.Pool // of *meeting
}

// The columns of the input of a counts.
const (
	pairCols = 2 + 2*spans + 1 // of the two nodes together
	nodeCols = 2 + 3*spans     // of each
	spans    = 3               // decays
)

// remembered is the number of last events of a source that are looked through for its candidates: a bound for the work of a node with
// millions.
const remembered = 2000

// walkOptions are those of the walks of a model, for each time after which an event counts 1/e; Dim is 0 for the default.
func (o *Options) walkOptions() (all []temporal.WalkOptions) {
	for _, d := range o.decays() {
		all = append(all, temporal.WalkOptions{Hops: o.Hops, Dim: o.WalkDim, Decay: 1 / d})
	}
	return all
}

// decays are the times after which an event counts 1/e.
func (o *Options) decays() []float64 {
	return []float64{o.TimeScale / 16, o.TimeScale, 16 * o.TimeScale}
}

func newCounts(s *stream, _ *dataset.Matrix, _ int, o *Options) model {
	m := &counts{s: s, decays: o.decays(), dropout: o.Dropout}
	m.meetings.New = func() any { return &meeting{of: make([]int32, s.Nodes)} }
	cols := pairCols + 2*nodeCols
	if o.Model == "walks" {
		m.walks = o.walkOptions()
		cols += len(m.walks) * m.walks[0].Cols()
	}
	m.In, m.Mid, m.Out = nn.NewLinear(cols, o.Hidden, true), nn.NewLinear(o.Hidden, o.Hidden, true), nn.NewLinear(o.Hidden, 1, true)
	return m
}

// NumLayers implements [nn.Model].
func (m *counts) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A counts computes by its [past] alone.
func (m *counts) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *counts) Reads() nn.Reads { return nn.Reads{Edges: true, Times: true} }

// met is what has happened between a source and a candidate.
type met struct {
	count [2]float64        // events to the candidate, and from it
	decay [2][spans]float64 // the same, each weighted by its age
	rank  int               // of the candidate among the nodes that the source had events with, the latest first
	some  bool
}

// meeting is the memory to find out what happened between a source and its candidates.
type meeting struct {
	of   []int32 // [nodes]: 1 more than the place of a candidate in mets, -1 for another node that the source has met, 0 for the rest
	mets []met
}

// pairFeatures writes what the past of source u says about its candidates, as of time t.
func (m *counts) pairFeatures(out []float32, u int32, cands []int32, happened *temporal.Events, t int64, k *meeting) {
	k.mets = k.mets[:0]
	for _, v := range cands {
		if k.of[v] == 0 {
			k.mets = append(k.mets, met{})
			k.of[v] = int32(len(k.mets))
		}
	}
	own, others := happened.Last(u, remembered), 0
	for i := len(own) - 1; i >= 0; i-- {
		e := own[i]
		v := happened.Other(e, u)
		at := k.of[v]
		if at <= 0 {
			if at == 0 {
				k.of[v] = -1
				others++
			}
			continue
		}
		p := &k.mets[at-1]
		if !p.some {
			p.some, p.rank = true, others
			others++
		}
		way := 0
		if happened.Src[e] != u {
			way = 1
		}
		p.count[way]++
		for k, d := range m.decays {
			p.decay[way][k] += math.Exp(float64(happened.Time[e]-t) / d)
		}
	}
	for i, v := range cands {
		row := out[i*pairCols : (i+1)*pairCols]
		p := &k.mets[k.of[v]-1]
		if !p.some {
			clear(row)
			continue
		}
		row[0], row[1] = log1p(p.count[0]), log1p(p.count[1])
		for k := range spans {
			row[2+k], row[2+spans+k] = log1p(p.decay[0][k]), log1p(p.decay[1][k])
		}
		row[2+2*spans] = 1 / float32(1+p.rank)
	}
	for _, v := range cands {
		k.of[v] = 0
	}
	for _, e := range own {
		k.of[happened.Other(e, u)] = 0
	}
}

func log1p(x float64) float32 { return float32(math.Log1p(x)) }

// view implements [model]: the columns of pairs.
func (m *counts) view(q *questions) any {
	out := make([]float32, len(q.cands)*pairCols)
	parallel.For(0, len(q.src), 8, func(lo, hi int) {
		k := m.meetings.Get().(*meeting)
		defer m.meetings.Put(k)
		for i := lo; i < hi; i++ {
			a, b := int(q.starts[i]), int(q.starts[i+1])
			m.pairFeatures(out[a*pairCols:b*pairCols], q.src[i], q.cands[a:b], q.happened, q.times[i], k)
		}
	})
	return out
}

// begin implements [model].
func (m *counts) begin(bool) (state, error) {
	p := &past{counts: m, histories: newHistories(m.s.Nodes, m.decays)}
	for _, o := range m.walks {
		w, err := temporal.NewWalks(m.s.Head(0), o)
		if err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		p.walks = append(p.walks, w)
	}
	return p, nil
}

// resumed implements [model]: the state is a function of the stream.
func (m *counts) resumed(happened *temporal.Events, _ int) (state, error) {
	p, err := m.begin(true)
	if err != nil {
		return nil, err
	}
	return p, p.happen(happened, 0, ranks{})
}

// past is the state of a counts.
type past struct {
	*counts
	*histories
	walks []*temporal.Walks
}

// histories are how often and how recently each node had events. They are a function of the stream alone.
type histories struct {
	decays []float64 // the times after which an event counts 1/e
	of     []ofNode
	seen   int // events that are in the counts
}

func newHistories(nodes int, decays []float64) *histories {
	return &histories{decays: decays, of: make([]ofNode, nodes)}
}

// ofNode is how often and how recently a node had events, as source and as destination.
type ofNode struct {
	n     [2]float64
	decay [2][spans]float64 // as of last
	last  [2]int64
}

// features writes the columns of a node as of time t.
func (n *ofNode) features(row []float32, decays []float64, t int64) {
	clear(row)
	for way := range 2 {
		if n.n[way] == 0 {
			continue
		}
		row[way] = log1p(n.n[way])
		for k, d := range decays {
			row[2+way*spans+k] = log1p(n.decay[way][k] * math.Exp(float64(n.last[way]-t)/d))
		}
	}
	if n.n[0]+n.n[1] == 0 {
		return
	}
	last := n.last[0]
	if n.n[0] == 0 || n.n[1] > 0 && n.last[1] > last {
		last = n.last[1]
	}
	for k, d := range decays {
		row[2+2*spans+k] = float32(1 / (1 + float64(t-last)/d))
	}
}

// taken implements [state].
func (h *histories) taken() int { return h.seen }

// scores implements [state].
func (p *past) scores(f *nn.Fwd, q *questions, view any) (*nn.Tensor, error) {
	ofPairs, cols := view.([]float32), pairCols+2*nodeCols
	x := make([]float32, len(q.cands)*cols)
	parallel.For(f.Config().Threads, len(q.src), 8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			t := q.times[i]
			var own [nodeCols]float32
			p.of[q.src[i]].features(own[:], p.counts.decays, t)
			for at := int(q.starts[i]); at < int(q.starts[i+1]); at++ {
				row := x[at*cols : (at+1)*cols]
				copy(row, ofPairs[at*pairCols:(at+1)*pairCols])
				copy(row[pairCols:], own[:])
				p.of[q.cands[at]].features(row[pairCols+nodeCols:], p.counts.decays, t)
			}
		}
	})
	h := f.Input(len(q.cands), cols, x, nil)
	for _, walks := range p.walks {
		w := make([]float32, len(q.cands)*walks.Cols())
		if err := walks.Features(w, q.src, q.times, q.starts, q.cands); err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		h = f.Concat(h, f.Input(len(q.cands), walks.Cols(), w, nil))
	}
	h = f.ReLU(p.In.Forward(f, h))
	if p.dropout > 0 {
		h = f.Dropout(h.SetSpace(&nn.Space{IDs: q.names}), p.dropout)
	}
	return p.Out.Forward(f, f.ReLU(p.Mid.Forward(f, h))), nil
}

// happen implements [state].
func (p *past) happen(now *temporal.Events, before int, _ ranks) error {
	for _, w := range p.walks {
		w.See(now)
	}
	p.add(now, before)
	return nil
}

// add adds the events of now behind the first before.
func (h *histories) add(now *temporal.Events, before int) {
	for e := before; e < now.Len(); e++ {
		t := now.Time[e]
		for way, v := range []int32{now.Src[e], now.Dst[e]} {
			n := &h.of[v]
			for k, d := range h.decays {
				if n.n[way] == 0 {
					n.decay[way][k] = 0 // and last is no time yet
				} else {
					n.decay[way][k] *= math.Exp(float64(n.last[way]-t) / d)
				}
				n.decay[way][k]++
			}
			n.n[way]++
			n.last[way] = t
		}
		h.seen++
	}
}
