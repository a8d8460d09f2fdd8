package graphops

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

// EdgeData is what edges have besides their ends; each part can be nil. Entry i, or row i, is edge
// i's.
type EdgeData struct {
	Weights  []float32     // finite
	Features *EdgeFeatures // finite
	Times    []int64
	Types    []uint16 // below LoopType
}

// FromEdgesWith is [FromEdges] for edges src[i] → dst[i] with weights, features, times and types, which
// follow their edges into the graph's order.
//
//   - With Undirected, the reverse of an edge has the edge's weight, features, time and type.
//   - Equal edges have the same source, destination, type and time (edges of different times are
//     different events, and all are kept). They become one edge with the sum of their weights and the mean of
//     their features. Sums are in float64 and rounded once.
//   - With KeepDuplicates parallel edges keep their own data.
//   - Edges of the same source and destination are in ascending order of type, then of time, then of
//     weight, then of features.
//   - Features by relation ([EdgeFeaturesByRelation]) must be of the given types, and stay by relation.
//   - A self-loop that SelfLoops adds has weight 1, the mean of the features of the node's other
//     in-edges (zeros if there are none), and the earliest time of the whole list.
//
// The result depends neither on the order of the edges nor on the number of threads. In addition to
// the errors of FromEdges, it returns an error for data of another length than src, for a weight or
// feature that is not finite, for more than 2^31-1 edges, for a type that is [LoopType], and for types
// together with SelfLoops, because such a loop has no type ([Graph.WithSelfLoops] adds typed ones). The
// graph has no schema: [Graph.WithTypes] adds one.
//
// Cost: that of FromEdges, plus 12 bytes of scratch memory per edge and a sort of each node's edges.
// Without data it is FromEdges.
func FromEdgesWith(nodes int, src, dst []int32, data EdgeData, o BuildOptions) (*Graph, error) {
	if data.Weights == nil && data.Features == nil && data.Times == nil && data.Types == nil {
		return FromEdges(nodes, src, dst, o)
	}
	if err := data.check(len(src)); err != nil {
		return nil, err
	}
	if data.Types != nil && o.SelfLoops {
		return nil, errors.New("graphops: self-loops for edges with types need a type of their own; add them by Graph.WithSelfLoops, which gives each node type a relation")
	}
	if err := checkEdges(nodes, src, dst, o.Threads); err != nil {
		return nil, err
	}
	b := builder{nodes: nodes, edges: len(src), threads: o.Threads, progress: o.Progress}
	// Instead of its source, an edge carries its number and whether it is reversed: 2i or 2i+1. The
	// value fits in 32 unsigned bits, and the order of a row is corrected below.
	b.pack = func(buf []uint64, lo, hi int) []uint64 {
		for i := lo; i < hi; i++ {
			buf = append(buf, uint64(uint32(dst[i]))<<32|uint64(2*i))
			if o.Undirected && src[i] != dst[i] {
				buf = append(buf, uint64(uint32(src[i]))<<32|uint64(2*i+1))
			}
		}
		return buf
	}
	w := withData{nodes: nodes, src: src, dst: dst, in: data, o: o, numbered: b.build()}
	w.sort()
	g := w.place()
	g.EdgeFeatures = g.EdgeFeatures.narrowed(g.EdgeTypes, data.Features.RelationWidths())
	return g, nil
}

// Rebuild builds the graph again from its own edges, with their weights, features, times and types, as
// [FromEdgesWith] does: with o.Undirected it adds the reverse of every edge, with o.SelfLoops the
// missing self-loops, and without o.KeepDuplicates it merges equal edges.
func (g *Graph) Rebuild(o BuildOptions) (*Graph, error) {
	dst := make([]int32, len(g.Indices))
	parallel.For(o.Threads, g.NumNodes(), rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				dst[e] = int32(v)
			}
		}
	})
	r, err := FromEdgesWith(g.NumNodes(), g.Indices, dst, g.EdgeData(), o)
	if err != nil || g.Schema == nil {
		return r, err
	}
	return r.WithTypes(g.Schema, r.EdgeTypes)
}

func (d EdgeData) check(edges int) error {
	switch {
	case d.Weights != nil && len(d.Weights) != edges:
		return fmt.Errorf("graphops: %d weights for %d edges", len(d.Weights), edges)
	case d.Times != nil && len(d.Times) != edges:
		return fmt.Errorf("graphops: %d times for %d edges", len(d.Times), edges)
	case d.Types != nil && len(d.Types) != edges:
		return fmt.Errorf("graphops: %d types for %d edges", len(d.Types), edges)
	case edges > math.MaxInt32:
		return fmt.Errorf("graphops: %d edges with weights, features, times or types; at most %d can be built into a graph", edges, math.MaxInt32)
	}
	if i := slices.IndexFunc(d.Weights, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }); i >= 0 {
		return fmt.Errorf("graphops: edge %d has the weight %v; weights must be finite", i, d.Weights[i])
	}
	if i := slices.Index(d.Types, LoopType); i >= 0 {
		return fmt.Errorf("graphops: edge %d has the type %d, which is kept for self-loops that layers add; types are numbers below it", i, LoopType)
	}
	x := d.Features
	if x == nil {
		return nil
	}
	if err := x.check(int64(edges)); err != nil {
		return err
	}
	if !x.of(d.Types) {
		return errors.New("graphops: the edge features are by relation, but of edges of other types")
	}
	if row, col := x.FirstNotFinite(0, int64(edges)); row >= 0 {
		values := make([]float32, x.Cols)
		x.CopyRow(values, row)
		return fmt.Errorf("graphops: feature %d of edge %d is %v; features must be finite", col, row, values[col])
	}
	return nil
}

// withData puts the data of edges into the order of the graph.
type withData struct {
	nodes    int
	src, dst []int32
	in       EdgeData
	o        BuildOptions
	numbered *Graph  // its Indices are numbers of edges
	kept     []int64 // edges of each node after equal ones are merged, and the self-loop if one is added
}

// numberedEdge is an in-edge of the current node.
type numberedEdge struct {
	src    int32
	w      float32
	time   int64
	number int32 // in the list
	kind   uint16
}

// row appends the in-edges of node v, in their final order if they are sorted.
func (b *withData) row(buf []numberedEdge, v int) []numberedEdge {
	for _, number := range b.numbered.Indices[b.numbered.Indptr[v]:b.numbered.Indptr[v+1]] {
		i := int32(uint32(number) >> 1)
		e := numberedEdge{number: i}
		if e.src = b.src[i]; number&1 != 0 {
			e.src = b.dst[i]
		}
		if b.in.Weights != nil {
			e.w = b.in.Weights[i]
		}
		if b.in.Times != nil {
			e.time = b.in.Times[i]
		}
		if b.in.Types != nil {
			e.kind = b.in.Types[i]
		}
		buf = append(buf, e)
	}
	return buf
}

// compare orders edges into the same node by source, type, time, weight and features. Edges that compare
// equal have the same content, so the order does not depend on that of the list.
func (b *withData) compare(e, f numberedEdge) int {
	if e.src != f.src {
		return cmp.Compare(e.src, f.src)
	}
	if e.kind != f.kind {
		return cmp.Compare(e.kind, f.kind)
	}
	if e.time != f.time {
		return cmp.Compare(e.time, f.time)
	}
	if e.w != f.w {
		return cmp.Compare(e.w, f.w)
	}
	if c := cmp.Compare(math.Float32bits(e.w), math.Float32bits(f.w)); c != 0 || b.in.Features == nil {
		return c
	}
	return b.in.Features.compareRows(int64(e.number), int64(f.number))
}

// same reports whether two edges become one.
func (b *withData) same(e, f numberedEdge) bool {
	return e.src == f.src && e.kind == f.kind && e.time == f.time && !b.o.KeepDuplicates
}

// sort sorts the rows and counts the edges that are kept.
func (b *withData) sort() {
	b.kept = make([]int64, b.nodes)
	parallel.For(b.o.Threads, b.nodes, rowGrain, func(lo, hi int) {
		var row []numberedEdge
		for v := lo; v < hi; v++ {
			row = b.row(row[:0], v)
			slices.SortFunc(row, b.compare)
			numbers := b.numbered.Indices[b.numbered.Indptr[v]:b.numbered.Indptr[v+1]]
			loop := false
			for i, e := range row {
				reversed := int32(0)
				if e.src != b.src[e.number] {
					reversed = 1
				}
				numbers[i] = e.number<<1 | reversed
				loop = loop || e.src == int32(v)
				if i == 0 || !b.same(row[i-1], e) {
					b.kept[v]++
				}
			}
			if b.o.SelfLoops && !loop {
				b.kept[v]++
			}
		}
	})
}

// place makes the graph of the sorted rows.
func (b *withData) place() *Graph {
	g := &Graph{Indptr: make([]int64, b.nodes+1)}
	for v, n := range b.kept {
		g.Indptr[v+1] = g.Indptr[v] + n
	}
	edges := g.Indptr[b.nodes]
	g.Indices = make([]int32, edges)
	if b.in.Weights != nil {
		g.EdgeWeights = make([]float32, edges)
	}
	if b.in.Features != nil {
		g.EdgeFeatures = b.in.Features.newLike(edges)
	}
	if b.in.Types != nil {
		g.EdgeTypes = make([]uint16, edges)
	}
	var earliest int64
	if b.in.Times != nil {
		g.EdgeTimes = make([]int64, edges)
		if len(b.in.Times) > 0 {
			earliest = slices.Min(b.in.Times)
		}
	}
	parallel.For(b.o.Threads, b.nodes, rowGrain, func(lo, hi int) {
		p := placer{b: b, g: g, earliest: earliest}
		for v := lo; v < hi; v++ {
			p.row(v)
		}
	})
	if b.in.Weights != nil {
		return g.WithEdgeWeights(g.EdgeWeights)
	}
	return g
}

// placer writes rows of the graph.
type placer struct {
	b        *withData
	g        *Graph
	earliest int64
	edges    []numberedEdge
	sum      []float64
	values   []float32
}

func (p *placer) row(v int) {
	p.edges = p.b.row(p.edges[:0], v)
	at, end := p.g.Indptr[v], p.g.Indptr[v+1]
	groups := int64(0)
	for i, e := range p.edges {
		if i == 0 || !p.b.same(p.edges[i-1], e) {
			groups++
		}
	}
	addLoop, loop := end-at > groups, int64(-1)
	for i := 0; i < len(p.edges); {
		first := i
		for i++; i < len(p.edges) && p.b.same(p.edges[first], p.edges[i]); i++ {
		}
		if addLoop && loop < 0 && p.edges[first].src > int32(v) {
			loop = at
			at++
		}
		p.merge(at, p.edges[first:i])
		at++
	}
	if addLoop {
		if loop < 0 {
			loop = at
		}
		p.loop(loop, int32(v))
	}
}

// merge writes equal edges as the edge at the CSC position at.
func (p *placer) merge(at int64, equal []numberedEdge) {
	g, in := p.g, &p.b.in
	g.Indices[at] = equal[0].src
	if in.Times != nil {
		g.EdgeTimes[at] = equal[0].time
	}
	if in.Types != nil {
		g.EdgeTypes[at] = equal[0].kind
	}
	if in.Weights != nil {
		sum := 0.0
		for _, e := range equal {
			sum += float64(e.w)
		}
		g.EdgeWeights[at] = float32(sum)
	}
	if in.Features == nil {
		return
	}
	if len(equal) == 1 {
		g.EdgeFeatures.copyBits(at, in.Features, int64(equal[0].number))
		return
	}
	p.clear()
	for _, e := range equal {
		in.Features.add(p.sum, int64(e.number), p.values)
	}
	g.EdgeFeatures.set(at, p.sum, len(equal))
}

// loop writes the added self-loop of node v, after the node's other edges.
func (p *placer) loop(at int64, v int32) {
	g := p.g
	g.Indices[at] = v
	if g.EdgeTimes != nil {
		g.EdgeTimes[at] = p.earliest
	}
	if g.EdgeWeights != nil {
		g.EdgeWeights[at] = 1
	}
	if g.EdgeFeatures == nil {
		return
	}
	p.clear()
	others := 0
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		if e != at {
			g.EdgeFeatures.add(p.sum, e, p.values)
			others++
		}
	}
	g.EdgeFeatures.set(at, p.sum, max(others, 1))
}

func (p *placer) clear() {
	if p.sum == nil {
		p.sum, p.values = make([]float64, p.g.EdgeFeatures.Cols), make([]float32, p.g.EdgeFeatures.Cols)
	}
	clear(p.sum)
}
