package events

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// reference computes the scores of a mixer and of a tgat one question after the other, by their formulas in float64, from the lists of the
// stream alone.
type reference struct {
	e    *temporal.Events
	x    *dataset.Matrix
	know int // events
	o    *Options
}

// last returns the last k events of a node before one, by looking at all.
func (r *reference) last(node int32, before, k int) (events []int) {
	for e := before - 1; e >= 0 && len(events) < k; e-- {
		if r.e.Src[e] == node || r.e.Dst[e] == node {
			events = append([]int{e}, events...)
		}
	}
	return events
}

func (r *reference) other(event int, node int32) int32 {
	return r.e.Src[event] + r.e.Dst[event] - node
}

func (r *reference) feature(event int) []float64 {
	row := make([]float32, r.e.Features.Cols)
	r.e.Features.CopyRow(row, r.e.Edge[event])
	return wide(row)
}

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

func (r *reference) node(n *ofNodes, v int32) []float64 {
	x := wide(r.x.Row(int(v)))
	return append(x, wide(n.Learned.W[int(v)*n.Learned.Cols:][:n.Learned.Cols])...)
}

// product returns W·x + b.
func product(l *nn.Linear, x []float64) []float64 {
	y := make([]float64, l.Weight.Rows)
	for i := range y {
		if l.Bias != nil {
			y[i] = float64(l.Bias.W[i])
		}
		for j, v := range x {
			y[i] += float64(l.Weight.W[i*l.Weight.Cols+j]) * v
		}
	}
	return y
}

func plus(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for i := range a {
		c[i] = a[i] + b[i]
	}
	return c
}

func each(x []float64, of func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = of(v)
	}
	return y
}

func relu(x float64) float64 { return max(0, x) }
func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func (r *reference) encoded(t *nn.TimeEncoder, span int64) (y []float64) {
	for i, w := range t.Weight.W {
		y = append(y, math.Cos(float64(w)*float64(span)/r.o.TimeScale+float64(t.Bias.W[i])))
	}
	return y
}

func normed(n *nn.LayerNorm, x []float64) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(square+1e-5)*float64(n.Weight.W[i]) + float64(n.Bias.W[i])
	}
	return y
}

// mixed returns the rows of a mixer layer.
func mixedRows(m *nn.Mixer, rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows))
	for s := range rows {
		out[s] = append([]float64(nil), rows[s]...)
	}
	for c := range rows[0] {
		column := make([]float64, len(rows))
		for s := range rows {
			column[s] = rows[s][c]
		}
		for s, v := range product(m.TokenOut, each(product(m.TokenIn, normed(m.TokenNorm, column)), gelu)) {
			out[s][c] += v
		}
	}
	for s := range out {
		out[s] = plus(out[s], product(m.ChannelOut, each(product(m.ChannelIn, normed(m.ChannelNorm, out[s])), gelu)))
	}
	return out
}

func (r *reference) mixer(m *mixer, v int32, now int64) []float64 {
	var rows [][]float64
	last := r.last(v, r.know, r.o.Neighbors)
	for range r.o.Neighbors - len(last) {
		rows = append(rows, product(m.In, make([]float64, m.In.Weight.Cols)))
	}
	for _, e := range last {
		rows = append(rows, product(m.In, append(r.encoded(m.Time, now-r.e.Time[e]), r.feature(e)...)))
	}
	for _, mix := range m.Mixers {
		rows = mixedRows(mix, rows)
	}
	mean := make([]float64, r.o.Hidden)
	for _, row := range rows {
		mean = plus(mean, each(row, func(x float64) float64 { return x / float64(len(rows)) }))
	}
	var near [][]float64
	for _, e := range r.last(v, r.know, remembered) {
		if m.window == 0 || now-r.e.Time[e] <= m.window {
			near = append(near, r.node(m.Nodes, r.other(e, v)))
		}
	}
	own := r.node(m.Nodes, v)
	for _, row := range near {
		own = plus(own, each(row, func(x float64) float64 { return x / float64(len(near)) }))
	}
	return product(m.Out, append(mean, own...))
}

func (r *reference) tgat(m *tgat, layer int, v int32, before int, now int64) []float64 {
	if layer == 0 {
		return r.node(m.Nodes, v)
	}
	l := m.Layers[layer-1]
	own := r.tgat(m, layer-1, v, before, now)
	query := product(l.Conv.LinQuery, own)
	var keys, values [][]float64
	for _, e := range r.last(v, before, r.o.Neighbors) {
		u := r.tgat(m, layer-1, r.other(e, v), e, r.e.Time[e])
		edge := product(l.Conv.LinEdge, append(r.encoded(m.Time, now-r.e.Time[e]), r.feature(e)...))
		keys, values = append(keys, plus(product(l.Conv.LinKey, u), edge)), append(values, plus(product(l.Conv.LinValue, u), edge))
	}
	sum, width := make([]float64, r.o.Hidden), r.o.Hidden/r.o.Heads
	for h := range r.o.Heads {
		var weights []float64
		total := 0.0
		for _, key := range keys {
			dot := 0.0
			for c := h * width; c < (h+1)*width; c++ {
				dot += query[c] * key[c]
			}
			weights = append(weights, math.Exp(dot/math.Sqrt(float64(width))))
			total += weights[len(weights)-1]
		}
		for i, value := range values {
			for c := h * width; c < (h+1)*width; c++ {
				sum[c] += weights[i] / total * value[c]
			}
		}
	}
	y := append(plus(sum, product(l.Conv.LinSkip, own)), r.node(m.Nodes, v)...)
	return product(l.Out, each(product(l.In, y), relu))
}

func score(s *pairScore, a, b []float64) float64 {
	return product(s.Final, each(plus(product(s.Src, a), product(s.Dst, b)), relu))[0]
}

// The scores of mixer and tgat are those of their formulas, with one layer and with two, with features of events and of nodes and learned rows.
func TestNetworksAreTheirFormulas(t *testing.T) {
	const batch, at = 20, 100
	ds := visits(160, 160, 0)
	ds.Meta.TimeUnit = dataset.Seconds
	nodes := ds.Nodes()
	random := rand.New(rand.NewPCG(3, 4))
	x := &dataset.Matrix{Rows: nodes, Cols: 2, F32: make([]float32, 2*nodes)}
	for i := range x.F32 {
		x.F32[i] = random.Float32()
	}
	for _, o := range []*Options{
		{Model: "mixer", Layers: 1},
		{Model: "mixer", Layers: 2, Window: "20m"},
		{Model: "tgat", Layers: 1},
		{Model: "tgat", Layers: 2},
	} {
		o.Hidden, o.TimeDim, o.Neighbors, o.NodeRows, o.TimeScale, o.Heads = 6, 4, 5, 3, 600, 2
		o.Batch = batch
		s, err := newStream(ds, o)
		if err != nil {
			t.Fatal(err)
		}
		m, err := o.model(s, x, s.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		p, err := nn.Collect(m)
		if err != nil {
			t.Fatal(err)
		}
		p.Init(7)
		var learned *ofNodes
		q := s.before(at)
		r := &reference{s.Events, x, at, o}
		var embedding func(v int32) []float64
		var pair *pairScore
		switch m := m.(type) {
		case *mixer:
			learned, pair = m.Nodes, m.Score
			embedding = func(v int32) []float64 { return r.mixer(m, v, q.now) }
		case *tgat:
			learned, pair = m.Nodes, m.Score
			embedding = func(v int32) []float64 { return r.tgat(m, o.Layers, v, at, q.now) }
		}
		for i := range learned.Learned.W {
			learned.Learned.W[i] = random.Float32() - 0.5
		}
		for e := int32(at); e < at+4; e++ {
			q.ask(s, e, []int32{random.Int32N(30), random.Int32N(30)})
		}
		state, err := m.begin(false)
		if err != nil {
			t.Fatal(err)
		}
		f := nn.NewFwd(nn.Config{})
		f.Reset(nn.Config{})
		scores, err := state.scores(f, q, m.view(q))
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range q.src {
			for k := q.starts[i]; k < q.starts[i+1]; k++ {
				if got, want := float64(scores.Data()[k]), score(pair, embedding(u), embedding(q.cands[k])); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("%s of %d layers: the score of %d → %d is %v, want %v", o.Model, o.Layers, u, q.cands[k], got, want)
				}
			}
		}
		f.Close()
	}
}
