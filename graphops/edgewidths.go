package graphops

import (
	"fmt"
	"slices"
)

// EdgeFeaturesByRelation returns the features of edges whose relations differ in the number of features, without
// padding: of[r], [edges of relation r, any], has the features of relation r's edges in their order, or is nil if
// they have none. types has the relation of each edge, as [Graph.EdgeTypes] has. The result shares both.
//
// Its Cols are those of the widest relation, and [EdgeFeatures.CopyRow] writes zeros behind a narrower row.
// [EdgeFeatures.Width] is the number of features of one relation, which a layer of that relation reads alone (package nn,
// RelationConv). F32 and F16 are nil.
//
// It returns an error if a relation's features are of another number of edges, if a type is no relation, if some
// features are float16 and others float32, or if no relation has features. Cost: 4 bytes for each edge.
func EdgeFeaturesByRelation(types []uint16, of []*EdgeFeatures) (*EdgeFeatures, error) {
	x := &EdgeFeatures{ByRelation: of, kinds: types, rows: make([]int32, len(types))}
	count := make([]int32, len(of))
	for e, t := range types {
		if int(t) >= len(of) {
			return nil, fmt.Errorf("graphops: edge %d has the type %d, but there are features of %d relations", e, t, len(of))
		}
		x.rows[e] = count[t]
		count[t]++
	}
	first := -1
	for r, part := range of {
		if part == nil {
			continue
		}
		if first < 0 {
			first = r
		}
		if err := part.check(int64(count[r])); err != nil {
			return nil, fmt.Errorf("%w: the features of relation %d", err, r)
		}
		if count[r] > 0 && part.Half() != of[first].Half() {
			return nil, fmt.Errorf("graphops: the edge features of relation %d and of relation %d are not both float32 or both float16; convert one", first, r)
		}
		x.Cols = max(x.Cols, part.Cols)
	}
	if first < 0 {
		return nil, fmt.Errorf("graphops: none of %d relations has edge features; leave them out instead", len(of))
	}
	return x, nil
}

// Width is the number of features of relation r's edges: Cols, unless relations differ ([EdgeFeaturesByRelation]).
func (x *EdgeFeatures) Width(r int) int {
	switch {
	case x.ByRelation == nil && r >= 0 && r < len(x.Widths):
		return x.Widths[r]
	case x.ByRelation == nil:
		return x.Cols
	case r < 0 || r >= len(x.ByRelation) || x.ByRelation[r] == nil:
		return 0
	}
	return x.ByRelation[r].Cols
}

// RelationWidths returns the number of features of each relation, see [EdgeFeatures.Width], or nil if x is nil or one matrix.
func (x *EdgeFeatures) RelationWidths() []int {
	if x == nil || x.ByRelation == nil {
		return nil
	}
	w := make([]int, len(x.ByRelation))
	for r := range w {
		w[r] = x.Width(r)
	}
	return w
}

// at returns the matrix that has row e and the number of the row there; the matrix is nil if the edge has no features.
func (x *EdgeFeatures) at(e int64) (*EdgeFeatures, int64) {
	if x.ByRelation == nil {
		return x, e
	}
	return x.ByRelation[x.kinds[e]], int64(x.rows[e])
}

// OneWidth returns the features as one matrix, with zeros behind the rows of narrower relations, and with their Widths: x
// itself if it is one matrix.
func (x *EdgeFeatures) OneWidth() *EdgeFeatures {
	if x == nil || x.ByRelation == nil {
		return x
	}
	y := x.newLike(x.Rows())
	y.Widths = x.RelationWidths()
	for e := range x.Rows() {
		y.copyBits(e, x, e)
	}
	return y
}

// narrowed returns the rows of one matrix as features by relation, of which relation r has the first widths[r]; x itself
// if widths is nil.
func (x *EdgeFeatures) narrowed(types []uint16, widths []int) *EdgeFeatures {
	if x == nil || widths == nil {
		return x
	}
	of := make([]*EdgeFeatures, len(widths))
	for r, w := range widths {
		if w > 0 {
			of[r] = &EdgeFeatures{Cols: w, F32: some([]float32(nil), !x.Half()), F16: some([]uint16(nil), x.Half())}
		}
	}
	for e, t := range types {
		y := of[t]
		switch at := e * x.Cols; {
		case y == nil:
		case x.Half():
			y.F16 = append(y.F16, x.F16[at:at+y.Cols]...)
		default:
			y.F32 = append(y.F32, x.F32[at:at+y.Cols]...)
		}
	}
	found := false
	for _, y := range of {
		if y != nil {
			found, y.F32, y.F16 = true, slices.Clip(y.F32), slices.Clip(y.F16)
		}
	}
	if !found {
		return nil // relations without features alone are left
	}
	y, err := EdgeFeaturesByRelation(types, of)
	if err != nil {
		panic(err.Error()) // each relation has the rows of its edges
	}
	return y
}

// of reports whether the features are those of a graph's edges of these types: where relations differ in width, each edge
// must be of the relation of its features.
func (x *EdgeFeatures) of(types []uint16) bool {
	return x == nil || x.ByRelation == nil || slices.Equal(x.kinds, types)
}
