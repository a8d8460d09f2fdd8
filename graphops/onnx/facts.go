package onnx

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// fact is a quantity that layers derive from a block: its values for the recorded one, and how the model computes it.
type fact struct {
	values []float32
	cols   int
	model  func() string // a matrix [rows, cols]
	name   string
}

// near is the difference, relative to the values, below which they are taken as equal: layers round in other orders.
const near = 1e-5

func same(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		if y := b[i]; math.Abs(float64(x-y)) > near*math.Max(math.Abs(float64(x)), math.Abs(float64(y))) {
			return false
		}
	}
	return true
}

// fact returns the name of the quantity that has these values.
func (r *recorder) fact(values []float32, cols int) (name string, ok bool) {
	for i := range r.facts {
		f := &r.facts[i]
		if f.cols != cols || !same(values, f.values) {
			continue
		}
		if f.name == "" {
			f.name = f.model()
		}
		return f.name, true
	}
	return "", false
}

// uploaded is fact for values whose columns are not known.
func (r *recorder) uploaded(values []float32) (name string, cols int, ok bool) {
	for i := range r.facts {
		if name, ok := r.fact(values, r.facts[i].cols); ok {
			return name, r.facts[i].cols, true
		}
	}
	return "", 0, false
}

// integers returns the name of the index that has these values.
func (r *recorder) integers(x []int32) (name string, ok bool) {
	for _, e := range r.all {
		for _, s := range []*nodeSet{e.from, e.to} {
			if s == nil || s.types == nil {
				continue
			}
			switch kinds := r.kinds; {
			case slices.Equal(x, s.groups.rows):
				return s.grouped(r, kinds).rowsName, true
			case slices.Equal(x, s.groups.place):
				return s.grouped(r, kinds).placeName, true
			}
		}
		if e.kinds == nil {
			continue
		}
		for _, dst := range []bool{true, false} {
			if p := e.pairsBy(dst); slices.Equal(x, p.rowsOf) {
				p.make(r)
				return p.rows, true
			}
		}
		if slices.EqualFunc(x, e.kinds, func(a int32, b uint16) bool { return a == int32(b) }) {
			return e.types, true
		}
	}
	return "", false
}

func (r *recorder) know(values []float32, cols int, model func() string) {
	if len(values) > 0 {
		r.facts = append(r.facts, fact{values: values, cols: cols, model: model})
	}
}

// learn adds the quantities that layers derive from a block of the batch.
func (r *recorder) learn(e *edges, d graphops.Degrees, features *graphops.EdgeFeatures) {
	g, b, l := r.g, e.block, e.block.SelfLooped()
	with := edgesOf(l)
	counts := make([]float32, b.NumDst)
	for _, t := range e.target {
		counts[t]++
	}
	if e.weight != nil {
		r.know(e.weight, 1, func() string { return r.columnOf(e.weights) })
		r.know(with.weight, 1, func() string { return r.loopedWeights(e) })
		r.know(e.inverse(), 1, func() string {
			sum := r.sums(r.columnOf(e.weights), e.column(r), e.nDst)
			none := g.do("Equal", of(sum, g.number(0)))
			return g.do("Where", of(none, g.number(0), g.do("Reciprocal", of(sum))))
		})
		mean := make([]float32, e.n)
		for i, w := range e.weight {
			mean[i] = w / counts[e.target[i]]
		}
		r.know(mean, 1, func() string { return g.do("Div", of(r.columnOf(e.weights), r.pick(e.degree(r), e.dst))) })
	}
	if features != nil {
		own := make([]float32, e.n*features.Cols)
		b.GatherEdgeFeatures(own, features.Cols, 1)
		r.know(own, features.Cols, func() string { return e.features })
		values := make([]float32, l.NumEdges()*features.Cols)
		l.GatherEdgeFeatures(values, features.Cols, 1)
		r.know(values, features.Cols, func() string { return r.loopedFeatures(e, features.Cols) })
	}
	r.know(each(counts, func(n float32) float32 { return 1 / max(n, 1) }), 1, func() string {
		return g.do("Reciprocal", of(g.do("Max", of(e.degree(r), g.number(1)))))
	})
	r.know(each(counts, func(n float32) float32 { return min(n, 1) }), 1, func() string {
		return g.do("Min", of(e.degree(r), g.number(1)))
	})
	// In a batch of whole graphs the two are equal, and the first is found.
	r.know(with.normalised(e, d, false), 1, func() string { return r.normalised(e, false) })
	r.know(with.normalised(e, d, true), 1, func() string { return r.normalised(e, true) })
	r.learnScales(e, counts)
}

// learnScales adds the factors by degrees of a PNA, whose means over the training set are parameters of one element.
func (r *recorder) learnScales(e *edges, counts []float32) {
	g := r.g
	log := func() string { return g.do("Log", of(g.do("Add", of(e.degree(r), g.number(1))))) }
	least := func() string { return g.do("Max", of(e.degree(r), g.number(1))) }
	for _, m := range r.means {
		logs := func(n float32) float32 { return float32(math.Log(float64(n) + 1)) }
		r.know(each(counts, func(n float32) float32 { return logs(n) / m }), 1, func() string { return g.do("Div", of(log(), g.number(m))) })
		r.know(each(counts, func(n float32) float32 { return m / logs(max(n, 1)) }), 1, func() string {
			return g.do("Div", of(g.number(m), g.do("Log", of(g.do("Add", of(least(), g.number(1)))))))
		})
		r.know(each(counts, func(n float32) float32 { return n / m }), 1, func() string { return g.do("Div", of(e.degree(r), g.number(m))) })
		r.know(each(counts, func(n float32) float32 { return m / max(n, 1) }), 1, func() string { return g.do("Div", of(g.number(m), least())) })
	}
}

func each(x []float32, f func(float32) float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// columnOf is a vector as a column.
func (r *recorder) columnOf(x string) string { return r.g.do("Unsqueeze", of(x, r.g.ints(1))) }

// inverse is 1 divided by the weight of each destination's in-edges, 0 if that is 0.
func (e *edges) inverse() []float32 {
	sums := make([]float64, e.block.NumDst)
	for i, w := range e.weight {
		sums[e.target[i]] += float64(w)
	}
	out := make([]float32, len(sums))
	for d, s := range sums {
		if s != 0 {
			out[d] = float32(1 / s)
		}
	}
	return out
}

// loopedWeights is the weights of the block with self-loops, in the model's order [edges, 1].
func (r *recorder) loopedWeights(e *edges) string {
	e.looped(r)
	loops := ""
	if r.graphs { // all edges are there
		at := r.where(r.g.do("Equal", of(e.src, e.dst)))
		ones := r.g.do("Expand", of(r.g.number(1), e.nDst))
		loops = r.g.do("ScatterElements", of(ones, r.pick(e.dst, at), r.pick(e.weights, at)), withInt("axis", 0))
	} else {
		loops = r.first(inputLoop, e.nDst)
	}
	return r.columnOf(r.stacked(r.pick(e.weights, e.keptEdges(r)), loops))
}

// loopedFeatures is the features of the edges of the block with self-loops: a self-loop has the mean of the others.
func (r *recorder) loopedFeatures(e *edges, cols int) string {
	g := r.g
	e.looped(r)
	kept := e.keptEdges(r)
	x, to := r.pick(e.features, kept), r.columnOf(r.pick(e.dst, kept))
	shape := g.do("Concat", of(e.nDst, g.ints(int64(cols))), withInt("axis", 0))
	zero := g.do("Expand", of(g.number(0), shape))
	sum := g.do("ScatterElements", of(zero, g.do("Expand", of(to, g.do("Shape", of(x)))), x), withInt("axis", 0), withText("reduction", "add"))
	n := r.sums(r.ones(kept), to, e.nDst)
	return r.stacked(x, g.do("Div", of(sum, g.do("Max", of(n, g.number(1))))))
}

// normalised is the weights of a GCN for the recorded block: see nn.GCNConv. l is e with self-loops.
func (l *edges) normalised(e *edges, d graphops.Degrees, whole bool) []float32 {
	weight := func(i int) float32 {
		if l.weight == nil {
			return 1
		}
		return l.weight[i]
	}
	inverse, degree := make([]float64, e.block.NumSrc), make([]float64, e.block.NumSrc)
	some := make([]float32, e.block.NumDst)
	for i, t := range l.target {
		degree[t] += float64(weight(i))
	}
	for s := range degree {
		if s >= e.block.NumDst {
			degree[s] = 1
		}
		if whole {
			degree[s] = float64(d.LoopedDegree(e.block.SrcID(s)))
		}
		if degree[s] > 0 {
			inverse[s] = 1 / math.Sqrt(degree[s])
		}
	}
	for _, t := range e.target {
		some[t]++
	}
	out := make([]float32, l.n)
	for i, s := range l.source {
		t := l.target[i]
		scale := 1.0
		if whole && s != t && some[t] > 0 {
			scale = float64(d.InDegree(e.block.SrcID(int(t)))) / float64(some[t])
		}
		out[i] = float32(inverse[s] * float64(weight(i)) * inverse[t] * scale)
	}
	return out
}

// normalised is the weights of a GCN in the model [edges, 1]: by the degrees of the graph, or by those of the block.
func (r *recorder) normalised(e *edges, whole bool) string {
	g := r.g
	l := e.looped(r)
	weights := ""
	if e.weight != nil {
		weights = r.loopedWeights(e)
	}
	root := func(degree string) string {
		return g.do("Where", of(g.do("Greater", of(degree, g.number(0))), g.do("Reciprocal", of(g.do("Sqrt", of(degree)))), g.number(0)))
	}
	var inverse string
	if whole {
		inverse = root(r.first(r.columnOf(inputDegree), e.nSrc))
	} else {
		sums := l.degree(r)
		if weights != "" {
			sums = r.sums(weights, l.column(r), l.nDst)
		}
		rest := g.do("Sub", of(e.nSrc, e.nDst))
		ones := g.do("Expand", of(g.number(1), r.stacked(rest, g.ints(1))))
		inverse = r.stacked(root(sums), ones)
	}
	by := g.do("Mul", of(r.pick(inverse, l.src), r.pick(inverse, l.dst)))
	if weights != "" {
		by = g.do("Mul", of(by, weights))
	}
	if !whole {
		return by
	}
	// The edges of the graph by those of the block: those of a destination stand for all.
	all := r.columnOf(r.first(inputInDegree, e.nDst))
	scale := g.do("Div", of(all, g.do("Max", of(e.degree(r), g.number(1)))))
	to := r.pick(e.dst, e.keptEdges(r))
	loops := g.do("Expand", of(g.number(1), r.stacked(e.nDst, g.ints(1))))
	return g.do("Mul", of(by, r.stacked(r.pick(scale, to), loops)))
}
