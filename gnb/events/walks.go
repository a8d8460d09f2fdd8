package events

import (
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/parallel"
)

// walks scores a pair of nodes by a perceptron on what the stream says about them: how often and how recently each of the two had events, with each
// other, and in which direction. None of it is learned, so it is a function of the stream alone.
type walks struct {
	In  *nn.Linear `nn:"in"`
	Mid *nn.Linear `nn:"mid"`
	Out *nn.Linear `nn:"out"`

	nodes   int
	decays  []float64 // the times after which an event counts 1/e
	dropout float64
}

// The columns of a walks' input.
const (
	pairCols = 2 + 2*spans + 1 // of the two nodes together
	nodeCols = 2 + 3*spans     // of each
	spans    = 3               // decays
)

func newWalks(s *stream, o *Options) *walks {
	cols := pairCols + 2*nodeCols
	return &walks{
		In: nn.NewLinear(cols, o.Hidden, true), Mid: nn.NewLinear(o.Hidden, o.Hidden, true), Out: nn.NewLinear(o.Hidden, 1, true),
		nodes: s.Nodes, decays: []float64{o.TimeScale / 16, o.TimeScale, 16 * o.TimeScale}, dropout: o.Dropout,
	}
}

// NumLayers implements [nn.Model].
func (m *walks) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A walks computes by its [counts] alone.
func (m *walks) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *walks) Reads() nn.Reads { return nn.Reads{Edges: true} }

// pairFeatures writes what the past of source u says about its candidates, as of time t.
func (m *walks) pairFeatures(out []float32, u int32, cands []int32, happened *temporal.Events, t int64) {
	type past struct {
		count [2]float64        // of events to the candidate, and from it
		decay [2][spans]float64 // the same, each weighted by its age
		rank  int               // of the candidate among the nodes that u had events with, the latest first
	}
	of := make(map[int32]*past, len(cands))
	for _, v := range cands {
		of[v] = nil
	}
	own := happened.EventsOf(u)
	met := map[int32]bool{}
	for i := len(own) - 1; i >= 0; i-- {
		e := own[i]
		v := happened.Other(e, u)
		rank := len(met)
		met[v] = true
		p, asked := of[v]
		if !asked {
			continue
		}
		if p == nil {
			p = &past{rank: rank}
			of[v] = p
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
		p := of[v]
		if p == nil {
			clear(row)
			continue
		}
		row[0], row[1] = log1p(p.count[0]), log1p(p.count[1])
		for k := range spans {
			row[2+k], row[2+spans+k] = log1p(p.decay[0][k]), log1p(p.decay[1][k])
		}
		row[2+2*spans] = 1 / float32(1+p.rank)
	}
}

func log1p(x float64) float32 { return float32(math.Log1p(x)) }

// view implements [model]: the columns of pairs.
func (m *walks) view(q *questions) any {
	out := make([]float32, len(q.cands)*pairCols)
	parallel.For(0, len(q.src), 8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			a, b := int(q.starts[i]), int(q.starts[i+1])
			m.pairFeatures(out[a*pairCols:b*pairCols], q.src[i], q.cands[a:b], q.happened, q.times[i])
		}
	})
	return out
}

// begin implements [model].
func (m *walks) begin(bool) state { return &counts{walks: m, of: make([]count, m.nodes)} }

// resumed implements [model]: the state is a function of the stream.
func (m *walks) resumed(happened *temporal.Events) (state, error) {
	c := m.begin(true)
	return c, c.happen(happened, 0, ranks{})
}

// counts is the state of a walks: how many events each node had, and how recently.
type counts struct {
	*walks
	of []count
}

// count is what happened to a node, as source and as destination.
type count struct {
	n     [2]float64
	decay [2][spans]float64 // as of last
	last  [2]int64
}

// features writes the columns of a node as of time t.
func (c *count) features(row []float32, decays []float64, t int64) {
	clear(row)
	for way := range 2 {
		if c.n[way] == 0 {
			continue
		}
		row[way] = log1p(c.n[way])
		for k, d := range decays {
			row[2+way*spans+k] = log1p(c.decay[way][k] * math.Exp(float64(c.last[way]-t)/d))
		}
	}
	if last := max(c.last[0], c.last[1]); c.n[0]+c.n[1] > 0 {
		for k, d := range decays {
			row[2+2*spans+k] = float32(1 / (1 + float64(t-last)/d))
		}
	}
}

// scores implements [state].
func (c *counts) scores(f *nn.Fwd, q *questions, view any) *nn.Tensor {
	pairs, cols := view.([]float32), c.In.Weight.Cols
	x := make([]float32, len(q.cands)*cols)
	parallel.For(f.Config().Threads, len(q.src), 8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			t := q.times[i]
			var own [nodeCols]float32
			c.of[q.src[i]].features(own[:], c.decays, t)
			for at := int(q.starts[i]); at < int(q.starts[i+1]); at++ {
				row := x[at*cols : (at+1)*cols]
				copy(row, pairs[at*pairCols:(at+1)*pairCols])
				copy(row[pairCols:], own[:])
				c.of[q.cands[at]].features(row[pairCols+nodeCols:pairCols+2*nodeCols], c.decays, t)
			}
		}
	})
	h := f.ReLU(c.In.Forward(f, f.Input(len(q.cands), cols, x, nil)))
	h = f.ReLU(c.Mid.Forward(f, h))
	return c.Out.Forward(f, h)
}

// happen implements [state].
func (c *counts) happen(now *temporal.Events, before int, _ ranks) error {
	for e := before; e < now.Len(); e++ {
		t := now.Time[e]
		for way, v := range []int32{now.Src[e], now.Dst[e]} {
			n := &c.of[v]
			for k, d := range c.decays {
				n.decay[way][k] = 1 + n.decay[way][k]*math.Exp(float64(n.last[way]-t)/d)
			}
			n.n[way]++
			n.last[way] = t
		}
	}
	return nil
}
