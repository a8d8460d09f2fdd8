package graphops

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/parallel"
)

// reversePrefix begins the name of a relation that [Graph.WithReverses] adds.
const reversePrefix = "rev_"

// SelfRelation is the name of the relations that [Graph.WithSelfLoops] adds.
const SelfRelation = "self"

// Reverses returns the schema with the reverse of each relation added: relation "a:NAME:b" gets
// "b:rev_NAME:a", behind the schema's own relations and in their order. of[r] is the number of relation
// r's reverse. A relation whose reverse the schema has already, or that is the reverse of another one,
// gets none.
func (s *Schema) Reverses() (with *Schema, of []int) {
	with, of = s.Clone(), make([]int, len(s.Relations))
	for i, r := range s.Relations {
		if of[i] = s.Index(Relation{r.Dst, reversePrefix + r.Name, r.Src}); of[i] >= 0 {
			continue
		}
		if name, ok := strings.CutPrefix(r.Name, reversePrefix); ok {
			if of[i] = s.Index(Relation{r.Dst, name, r.Src}); of[i] >= 0 {
				continue
			}
		}
		of[i] = len(with.Relations)
		with.Relations = append(with.Relations, Relation{r.Dst, reversePrefix + r.Name, r.Src})
	}
	return with, of
}

// Reversed returns the relations to which [Schema.Reverses] adds no reverse, because the schema has it already.
func (s *Schema) Reversed() (had []Relation) {
	_, of := s.Reverses()
	for r, to := range of {
		if to < len(s.Relations) {
			had = append(had, s.Relations[r])
		}
	}
	return had
}

// WithReverses returns the graph with the reverse of each edge added, as an edge of the relation that
// [Schema.Reverses] adds, with the edge's weight, features and time. Edges of relations that have a
// reverse already get none, so doing it twice changes nothing. A graph whose nodes have no types, but
// whose edges have R, gets the types R to 2R-1 for the reverses of 0 to R-1.
//
// Threads (0: GOMAXPROCS) does not change the result. It returns an error if the edges have no types or
// there are too many relations. Cost: that of [FromEdgesWith] on twice the edges.
func (g *Graph) WithReverses(threads int) (*Graph, error) {
	if g.EdgeTypes == nil {
		return nil, errors.New("graphops: WithReverses is for graphs whose edges have types; Undirected adds the reverses of edges without")
	}
	schema, first := g.Schema, len(g.RelationEdges())
	of := make([]int, first)
	for r := range of {
		of[r] = first + r
	}
	if schema != nil {
		schema, of = schema.Reverses()
		if err := schema.Validate(); err != nil {
			return nil, err
		}
	} else if 2*first > MaxRelations {
		return nil, fmt.Errorf("graphops: WithReverses: %d relations with their reverses are more than %d", first, MaxRelations)
	}
	l := g.list(threads)
	for r, to := range of {
		if l.widths != nil && to >= first {
			l.widths = append(l.widths, l.widths[r]) // reverses are added in the order of their relations
		}
	}
	for e, t := range g.EdgeTypes {
		if of[t] >= first {
			l.add(g, int64(e), l.dst[e], l.src[e], uint16(of[t]))
		}
	}
	return l.build(g, schema, threads)
}

// WithSelfLoops returns the graph with a relation "t:self:t" for each node type t, which joins each node
// to itself. Such an edge has weight 1, the mean of the features of the node's other in-edges (zeros if
// there are none), and the earliest time of the whole graph. Where relations have features of their own width, it has
// none. The other relations keep their self-loops.
//
// Threads (0: GOMAXPROCS) does not change the result. It returns an error if nodes have no types or the
// schema has such a relation already. Cost: that of [FromEdgesWith].
func (g *Graph) WithSelfLoops(threads int) (*Graph, error) {
	if g.Schema == nil {
		return nil, errors.New("graphops: WithSelfLoops is for graphs with a schema; AddSelfLoops adds the self-loops of others")
	}
	schema := g.Schema.Clone()
	first := len(schema.Relations)
	for _, t := range schema.Nodes {
		schema.Relations = append(schema.Relations, Relation{t.Name, SelfRelation, t.Name})
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("graphops: WithSelfLoops: %w", err)
	}
	l := g.list(threads)
	if l.widths != nil {
		l.widths = append(l.widths, make([]int, len(g.Schema.Nodes))...)
	}
	earliest := int64(0)
	if len(g.EdgeTimes) > 0 {
		earliest = slices.Min(g.EdgeTimes)
	}
	var sum []float64
	var row []float32
	for v, t := range g.Schema.NodeTypes() {
		l.src, l.dst, l.types = append(l.src, int32(v)), append(l.dst, int32(v)), append(l.types, uint16(first)+t)
		if g.EdgeWeights != nil {
			l.weights = append(l.weights, 1)
		}
		if g.EdgeTimes != nil {
			l.times = append(l.times, earliest)
		}
		if x := g.EdgeFeatures; x != nil {
			sum, row = append(sum[:0], make([]float64, x.Cols)...), append(row[:0], make([]float32, x.Cols)...)
			lo, hi := g.Indptr[v], g.Indptr[v+1]
			for e := lo; e < hi && l.widths == nil; e++ {
				x.add(sum, e, row)
			}
			one := x.newLike(1)
			one.set(0, sum, int(max(hi-lo, 1)))
			l.x.appendRow(one, 0)
		}
	}
	return l.build(g, schema, threads)
}

// Homogeneous returns the graph without types: the same nodes and edges, of one kind. It shares the
// graph's arrays and data; edge features by relation become one matrix, with zeros behind narrower rows. [Schema.NodeTypes] and EdgeTypes are then the types of nodes and edges, and
// [Graph.WithTypes] leads back.
func (g *Graph) Homogeneous() *Graph {
	return (&Graph{Indptr: g.Indptr, Indices: g.Indices, EdgeWeights: g.EdgeWeights, looped: g.looped}).WithEdgeData(g.EdgeFeatures.OneWidth(), g.EdgeTimes)
}

// OfRelations returns the graph of all nodes with the edges of the given relations alone, with their
// data. Its schema has all types, and the given relations in the given order, which number its edges'
// types.
//
// It returns an error if edges have no types, or if a number is no relation or occurs twice. Cost: one
// pass over the edges.
func (g *Graph) OfRelations(relations ...int) (*Graph, error) {
	if g.EdgeTypes == nil {
		return nil, errors.New("graphops: OfRelations is for graphs whose edges have types")
	}
	number := make([]int, len(g.RelationEdges()))
	for i, r := range relations {
		if r < 0 || r >= len(number) || number[r] != 0 {
			return nil, fmt.Errorf("graphops: OfRelations: entry %d is relation %d; give relations from 0 to %d, each once", i, r, len(number)-1)
		}
		number[r] = i + 1
	}
	var l edgeList
	l.x = g.EdgeFeatures.emptyLike()
	if w := g.EdgeFeatures.RelationWidths(); w != nil {
		l.widths = []int{}
		for _, r := range relations {
			l.widths = append(l.widths, w[r])
		}
	}
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if t := number[g.EdgeTypes[e]]; t > 0 {
				l.add(g, e, g.Indices[e], v, uint16(t-1))
			}
		}
	}
	schema := g.Schema
	if schema != nil {
		schema = schema.Clone()
		schema.Relations = nil
		for _, r := range relations {
			schema.Relations = append(schema.Relations, g.Schema.Relations[r])
		}
	}
	return l.build(g, schema, 0)
}

// EdgesAt returns the edges src[i] → dst[i] at the given CSC positions, and their types, which are nil if
// edges have none. Cost: a binary search for each.
func (g *Graph) EdgesAt(positions []int64) (src, dst []int32, types []uint16) {
	for _, e := range positions {
		src, dst = append(src, g.Indices[e]), append(dst, int32(g.rowOf(e)))
		if g.EdgeTypes != nil {
			types = append(types, g.EdgeTypes[e])
		}
	}
	return src, dst, types
}

// edgeList is a list of edges with data.
type edgeList struct {
	src, dst []int32
	weights  []float32
	times    []int64
	types    []uint16
	x        *EdgeFeatures // one matrix
	widths   []int         // of the features of each relation, nil: those of x
}

// list returns the graph's edges in their order.
func (g *Graph) list(threads int) *edgeList {
	l := &edgeList{
		src: slices.Clone(g.Indices), dst: make([]int32, len(g.Indices)),
		weights: slices.Clone(g.EdgeWeights), times: slices.Clone(g.EdgeTimes), types: slices.Clone(g.EdgeTypes),
	}
	parallel.For(threads, g.NumNodes(), rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				l.dst[e] = int32(v)
			}
		}
	})
	if x := g.EdgeFeatures; x != nil {
		if l.widths = x.RelationWidths(); l.widths != nil {
			x = x.OneWidth()
		}
		l.x = &EdgeFeatures{Cols: x.Cols, F32: slices.Clone(x.F32), F16: slices.Clone(x.F16)}
	}
	return l
}

// add appends an edge with the data of g's edge e.
func (l *edgeList) add(g *Graph, e int64, src, dst int32, kind uint16) {
	l.src, l.dst, l.types = append(l.src, src), append(l.dst, dst), append(l.types, kind)
	if g.EdgeWeights != nil {
		l.weights = append(l.weights, g.EdgeWeights[e])
	}
	if g.EdgeTimes != nil {
		l.times = append(l.times, g.EdgeTimes[e])
	}
	if g.EdgeFeatures != nil {
		l.x.appendRow(g.EdgeFeatures, e)
	}
}

// build makes the graph of the edges, which has the kinds of data that g has.
func (l *edgeList) build(g *Graph, schema *Schema, threads int) (*Graph, error) {
	if len(l.src) > math.MaxInt32 {
		return nil, fmt.Errorf("graphops: %d edges with types; at most %d can be built into a graph", len(l.src), math.MaxInt32)
	}
	data := EdgeData{Types: some(l.types, true), Times: some(l.times, g.EdgeTimes != nil), Weights: some(l.weights, g.EdgeWeights != nil), Features: l.x}
	r, err := FromEdgesWith(g.NumNodes(), l.src, l.dst, data, BuildOptions{KeepDuplicates: true, Threads: threads})
	if err == nil {
		r.EdgeFeatures = r.EdgeFeatures.narrowed(r.EdgeTypes, l.widths)
	}
	if err != nil || schema == nil {
		return r, err
	}
	return r.WithTypes(schema, r.EdgeTypes)
}

// some returns x, as a slice that is nil exactly unless there is data.
func some[T any](x []T, there bool) []T {
	switch {
	case !there:
		return nil
	case x == nil:
		return []T{}
	}
	return x
}

// emptyLike returns a matrix of no rows with the columns and the element type of x; nil for nil.
func (x *EdgeFeatures) emptyLike() *EdgeFeatures {
	if x == nil {
		return nil
	}
	return x.newLike(0)
}

// appendRow appends row e of src, which has the same element type and at most as many columns.
func (x *EdgeFeatures) appendRow(src *EdgeFeatures, e int64) {
	if src.ByRelation != nil {
		row := src.newLike(1)
		row.copyBits(0, src, e)
		src, e = row, 0
	}
	lo, hi := int(e)*x.Cols, int(e+1)*x.Cols
	if src.F16 != nil {
		x.F16 = append(x.F16, src.F16[lo:hi]...)
		return
	}
	x.F32 = append(x.F32, src.F32[lo:hi]...)
}

// withoutTyped is [Graph.Without] for graphs with types.
func (g *Graph) withoutTyped(other *Graph, threads int) *Graph {
	rest := &Graph{Indptr: make([]int64, g.NumNodes()+1)}
	stays := make([]bool, len(g.Indices))
	parallel.For(threads, g.NumNodes(), rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			at, end := other.Indptr[v], other.Indptr[v+1]
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				for at < end && other.compareEdges(at, g, e) < 0 {
					at++
				}
				if stays[e] = at == end || other.compareEdges(at, g, e) != 0; stays[e] {
					rest.Indptr[v+1]++
				}
			}
		}
	})
	for v := range g.NumNodes() {
		rest.Indptr[v+1] += rest.Indptr[v]
	}
	kept := make([]int64, 0, rest.Indptr[g.NumNodes()])
	for e, stay := range stays {
		if stay {
			kept = append(kept, int64(e))
		}
	}
	rest.Indices = selected(g.Indices, kept, threads)
	return rest.withDataOf(g, kept, threads)
}

// compareEdges compares g's edge e with o's edge f, of the same destination, by source and type.
func (g *Graph) compareEdges(e int64, o *Graph, f int64) int {
	return cmp.Or(cmp.Compare(g.Indices[e], o.Indices[f]), cmp.Compare(g.EdgeTypes[e], o.EdgeTypes[f]))
}
