package graphops

import (
	"fmt"
	"strings"
)

// EdgeShape says what each edge of a graph has besides its ends. It is comparable.
type EdgeShape struct {
	Weighted    bool `json:"weighted,omitempty"`
	FeatureCols int  `json:"feature_cols,omitempty"` // 0: no features
	Half        bool `json:"half,omitempty"`         // the features are float16
	Times       bool `json:"times,omitempty"`
	Typed       bool `json:"typed,omitempty"`
}

// FeatureBytes is the size of an edge's features.
func (s EdgeShape) FeatureBytes() int {
	if s.Half {
		return 2 * s.FeatureCols
	}
	return 4 * s.FeatureCols
}

// Bytes is the size of everything that an edge has.
func (s EdgeShape) Bytes() int {
	n := s.FeatureBytes()
	if s.Weighted {
		n += 4
	}
	if s.Times {
		n += 8
	}
	if s.Typed {
		n += 2
	}
	return n
}

// String lists what an edge has, "nothing" if it has nothing.
func (s EdgeShape) String() string {
	var list []string
	if s.Weighted {
		list = append(list, "a weight")
	}
	if s.FeatureCols > 0 {
		of := "float32"
		if s.Half {
			of = "float16"
		}
		list = append(list, fmt.Sprintf("%d features in %s", s.FeatureCols, of))
	}
	if s.Times {
		list = append(list, "a time")
	}
	if s.Typed {
		list = append(list, "a type")
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// Shape returns what each edge has.
func (d *EdgeData) Shape() EdgeShape {
	s := EdgeShape{Weighted: d.Weights != nil, Times: d.Times != nil, Typed: d.Types != nil}
	if x := d.Features; x != nil {
		s.FeatureCols, s.Half = x.Cols, x.Half()
	}
	return s
}

// Has reports whether d holds exactly n edges of a shape.
func (d *EdgeData) Has(s EdgeShape, n int) bool {
	ok := d.Shape() == s && (!s.Weighted || len(d.Weights) == n) && (!s.Times || len(d.Times) == n) && (!s.Typed || len(d.Types) == n)
	if x := d.Features; x != nil {
		ok = ok && x.check(int64(n)) == nil
	}
	return ok
}

// SetLen gives d the shape s and n edges, in the memory of its slices if that is large enough. What
// the edges have is arbitrary then.
func (d *EdgeData) SetLen(s EdgeShape, n int) {
	d.Weights = setLen(d.Weights, s.Weighted, n)
	d.Times = setLen(d.Times, s.Times, n)
	d.Types = setLen(d.Types, s.Typed, n)
	if s.FeatureCols == 0 {
		d.Features = nil
		return
	}
	x := d.Features
	if x == nil {
		x = &EdgeFeatures{}
		d.Features = x
	}
	x.Cols = s.FeatureCols
	x.F32, x.F16 = setLen(x.F32, !s.Half, n*x.Cols), setLen(x.F16, s.Half, n*x.Cols)
}

// setLen returns a slice of length n that is not nil, in the memory of x if that is large enough, or nil.
func setLen[T any](x []T, has bool, n int) []T {
	switch {
	case !has:
		return nil
	case x == nil || cap(x) < n:
		return make([]T, n, n+n/8)
	}
	return x[:n]
}

// Append adds the edges of src, which has the shape of d.
func (d *EdgeData) Append(src EdgeData) {
	d.Weights, d.Times = append(d.Weights, src.Weights...), append(d.Times, src.Times...)
	d.Types = append(d.Types, src.Types...)
	if x := d.Features; x != nil {
		x.F32, x.F16 = append(x.F32, src.Features.F32...), append(x.F16, src.Features.F16...)
	}
}

// CopyRange sets the edges of d from number to on to the edges [lo, hi) of src, which has the shape of d.
func (d *EdgeData) CopyRange(to int, src *EdgeData, lo, hi int) {
	if d.Weights != nil {
		copy(d.Weights[to:], src.Weights[lo:hi])
	}
	if d.Times != nil {
		copy(d.Times[to:], src.Times[lo:hi])
	}
	if d.Types != nil {
		copy(d.Types[to:], src.Types[lo:hi])
	}
	if x := d.Features; x != nil {
		c := x.Cols
		switch {
		case src.Features.ByRelation != nil:
			x.copyRows(to, src.Features, lo, hi)
		case x.F16 != nil:
			copy(x.F16[to*c:], src.Features.F16[lo*c:hi*c])
		default:
			copy(x.F32[to*c:], src.Features.F32[lo*c:hi*c])
		}
	}
}

// copyRows sets the rows of x from number to on to the rows [lo, hi) of src, with zeros behind narrower ones.
func (x *EdgeFeatures) copyRows(to int, src *EdgeFeatures, lo, hi int) {
	clear(upToLen(x.F32, to*x.Cols, (to+hi-lo)*x.Cols))
	clear(upToLen(x.F16, to*x.Cols, (to+hi-lo)*x.Cols))
	for e := lo; e < hi; e++ {
		x.copyBits(int64(to+e-lo), src, int64(e))
	}
}

// upToLen returns x[lo:hi], or nil if x is nil.
func upToLen[T any](x []T, lo, hi int) []T {
	if x == nil {
		return nil
	}
	return x[lo:hi]
}

// Pick sets the edges of d from number to on to the edges first+picks[i] of src, which has the shape
// of d.
func (d *EdgeData) Pick(to int, src *EdgeData, first int64, picks []int32) {
	if d.Weights != nil {
		pick(d.Weights[to:], src.Weights[first:], picks)
	}
	if d.Times != nil {
		pick(d.Times[to:], src.Times[first:], picks)
	}
	if d.Types != nil {
		pick(d.Types[to:], src.Types[first:], picks)
	}
	if x := d.Features; x != nil {
		for i, p := range picks {
			if at := int(first) + int(p); src.Features.ByRelation != nil {
				x.copyRows(to+i, src.Features, at, at+1)
			} else {
				x.copyBits(int64(to+i), src.Features, int64(at))
			}
		}
	}
}

func pick[T any](dst, src []T, picks []int32) {
	for i, p := range picks {
		dst[i] = src[p]
	}
}

// Slice returns the edges [lo, hi), in the memory of d, except features by relation, which are copied into one matrix.
func (d *EdgeData) Slice(lo, hi int64) (s EdgeData) {
	if d.Weights != nil {
		s.Weights = d.Weights[lo:hi:hi]
	}
	if d.Times != nil {
		s.Times = d.Times[lo:hi:hi]
	}
	if d.Types != nil {
		s.Types = d.Types[lo:hi:hi]
	}
	if x := d.Features; x != nil {
		from, to := int(lo)*x.Cols, int(hi)*x.Cols
		s.Features = &EdgeFeatures{Cols: x.Cols}
		switch {
		case x.ByRelation != nil:
			s.Features = x.newLike(hi - lo)
			s.Features.copyRows(0, x, int(lo), int(hi))
		case x.F16 != nil:
			s.Features.F16 = x.F16[from:to:to]
		default:
			s.Features.F32 = x.F32[from:to:to]
		}
	}
	return s
}

// EdgeData returns what the edges have by CSC position, in the graph's memory.
func (g *Graph) EdgeData() EdgeData {
	return EdgeData{Weights: g.EdgeWeights, Features: g.EdgeFeatures, Times: g.EdgeTimes, Types: g.EdgeTypes}
}

// EdgeShape returns what each edge has.
func (g *Graph) EdgeShape() EdgeShape {
	d := g.EdgeData()
	return d.Shape()
}

// WithEdges returns the graph whose edges have d by CSC position, instead of what they have. The
// result shares the graph's arrays and d, and has no schema: see [Graph.WithTypes]. It panics if d does not have as many edges as the graph.
func (g *Graph) WithEdges(d EdgeData) *Graph {
	r := &Graph{Indptr: g.Indptr, Indices: g.Indices}
	if d.Weights != nil {
		r = r.WithEdgeWeights(d.Weights)
	}
	if d.Types != nil && len(d.Types) != len(g.Indices) {
		panic(fmt.Sprintf("graphops: WithEdges: %d types for %d edges", len(d.Types), len(g.Indices)))
	}
	r.EdgeTypes = d.Types
	return r.WithEdgeData(d.Features, d.Times)
}

// edgeRows are what the edges of a block have, and where it is.
type edgeRows struct {
	EdgeData
	pos  []int64 // edge e-Indptr()[0] has row pos[e-Indptr()[0]]
	own  []int32 // the same, instead of pos; negative for an added self-loop
	from int64   // without pos and own, edge e-Indptr()[0] has row from+e-Indptr()[0]
}

// row returns the row of the edge number e of the block; ok is false if it is a self-loop that
// [Block.SelfLooped] added.
func (r *edgeRows) row(e int64) (row int64, ok bool) {
	switch {
	case r.own != nil:
		row = int64(r.own[e])
		return row, row >= 0
	case r.pos != nil:
		row = r.pos[e]
		return row, row < firstLoopPos
	}
	return r.from + e, true
}

// edges returns what the block's edges have: its own data, else that of its graph.
func (b *Block) edges() edgeRows {
	switch {
	case b.hasOwn():
		return edgeRows{EdgeData: b.own, own: b.ownRows}
	case b.Graph != nil:
		return edgeRows{EdgeData: b.Graph.EdgeData(), pos: b.EdgePos(), from: b.Indptr()[0]}
	}
	return edgeRows{}
}

// HasEdgeData reports whether something is known about what the block's edges have: from the block's
// graph or, in a block of a divided graph, from the block.
func (b *Block) HasEdgeData() bool {
	return b.Graph != nil || b.hasOwn()
}

func (b *Block) hasOwn() bool {
	return b.own.Features != nil || b.own.Times != nil || b.own.Types != nil
}

func (b *Block) edgeTable() *EdgeFeatures {
	switch {
	case b.own.Features != nil:
		return b.own.Features
	case b.Graph != nil:
		return b.Graph.EdgeFeatures
	}
	return nil
}

// OwnEdges returns what the edges of a block of a divided graph have, [edges], in the block's memory.
// In another block, and in one made by SelfLooped, it has the weights alone.
func (b *Block) OwnEdges() EdgeData {
	d := b.own
	if b.ownRows != nil {
		d = EdgeData{}
	}
	d.Weights = b.Weights()
	return d
}

// setOwn sets what the block's edges have if its graph does not have it.
func (b *Block) setOwn(d EdgeData, rows []int32) {
	d.Weights = nil
	b.own, b.ownRows = d, rows
}
