package graphops

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/simd"
)

// wideEdges is two users (0, 1) and three items (2 to 4). An edge of likes has two features, one of knows none, one of makes
// one; made has no edges and three features. The features of likes are 10·source+destination and a hundred times the
// number of the edge in the list.
func wideEdges(t *testing.T, half bool) *Graph {
	t.Helper()
	src, dst := []int32{1, 0, 0, 3, 1, 4}, []int32{2, 4, 2, 0, 0, 1}
	types := []uint16{0, 0, 0, 2, 1, 2}
	of := []*EdgeFeatures{{Cols: 2, F32: []float32{12, 0, 4, 100, 2, 200}}, nil, {Cols: 1, F32: []float32{30, 41}}, {Cols: 3, F32: []float32{}}}
	if half {
		for _, x := range of {
			if x != nil {
				x.F16 = make([]uint16, len(x.F32))
				simd.ToHalf(x.F16, x.F32)
				x.F32 = nil
			}
		}
	}
	x, err := EdgeFeaturesByRelation(types, of)
	if err != nil {
		t.Fatal(err)
	}
	g, err := FromEdgesWith(5, src, dst, EdgeData{Types: types, Features: x}, BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&Schema{
			Nodes:     []NodeType{{"user", 2}, {"item", 3}},
			Relations: []Relation{{"user", "likes", "item"}, {"user", "knows", "user"}, {"item", "makes", "user"}, {"item", "made", "item"}},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// featuresOf lists the edges with their relation and features, of the relation's own width.
func featuresOf(g *Graph) (list []string) {
	x := g.EdgeFeatures
	for v := range g.NumNodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			row := make([]float32, x.Width(int(g.EdgeTypes[e])))
			x.CopyRow(row, e)
			list = append(list, fmt.Sprintf("%d %s %d %v", g.Indices[e], g.Schema.Relations[g.EdgeTypes[e]].Name, v, row))
		}
	}
	return list
}

func TestEdgeFeaturesByRelation(t *testing.T) {
	want := []string{"1 knows 0 []", "3 makes 0 [30]", "4 makes 1 [41]", "0 likes 2 [2 200]", "1 likes 2 [12 0]", "0 likes 4 [4 100]"}
	for _, half := range []bool{false, true} {
		g := wideEdges(t, half)
		if got := featuresOf(g); !slices.Equal(got, want) {
			t.Errorf("the edges are %q, not %q", got, want)
		}
		if x := g.EdgeFeatures; x.Cols != 3 && x.Cols != 2 || x.Half() != half || x.Rows() != 6 || x.F32 != nil || x.F16 != nil {
			t.Errorf("the features are %+v", x)
		}
		one := g.EdgeFeatures.OneWidth()
		row := make([]float32, one.Cols)
		if one.CopyRow(row, 1); one.ByRelation != nil || one.Rows() != 6 || one.Half() != half || !slices.Equal(row, append([]float32{30}, make([]float32, one.Cols-1)...)) || one.Width(2) != 1 {
			t.Errorf("in one width, a row is %v", row)
		}
		s := g.EdgeData()
		s = s.Slice(3, 5)
		if s.Features.CopyRow(row, 1); s.Features.Rows() != 2 || row[0] != 12 || row[1] != 0 {
			t.Errorf("a slice's row is %v", row)
		}
		var d EdgeData
		all := g.EdgeData()
		d.SetLen(all.Shape(), 2)
		for _, x := range [][]float32{d.Features.F32} {
			for i := range x {
				x[i] = 7 // what was there before
			}
		}
		d.Pick(0, &all, 0, []int32{2, 3})
		d.Features.CopyRow(row, 0)
		if want := []float32{41, 0, 0}; !d.Has(all.Shape(), 2) || !half && !slices.Equal(row, want[:len(row)]) {
			t.Errorf("a picked row is %v", row)
		}
	}
}

// Transforms keep the width of each relation.
func TestTransformsKeepWidths(t *testing.T) {
	must := func(g *Graph, err error) *Graph {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := wideEdges(t, false)
	reversed := must(g.WithReverses(2))
	for _, want := range []string{"2 rev_likes 0 [2 200]", "0 rev_makes 3 [30]", "0 rev_knows 1 []", "1 rev_makes 4 [41]", "0 likes 4 [4 100]"} {
		if got := featuresOf(reversed); !slices.Contains(got, want) {
			t.Errorf("with reverses, there is no %q in %q", want, got)
		}
	}
	if w := reversed.EdgeFeatures.RelationWidths(); !slices.Equal(w, []int{2, 0, 1, 3, 2, 0, 1, 3}) {
		t.Errorf("the widths with reverses are %v", w)
	}
	if loops := must(g.WithSelfLoops(1)); !slices.Contains(featuresOf(loops), "3 self 3 []") || !slices.Contains(featuresOf(loops), "1 likes 2 [12 0]") {
		t.Errorf("with self-loops: %q", featuresOf(loops))
	}
	if got := featuresOf(must(g.OfRelations(2, 0))); !slices.Equal(got, []string{"3 makes 0 [30]", "4 makes 1 [41]", "0 likes 2 [2 200]", "1 likes 2 [12 0]", "0 likes 4 [4 100]"}) {
		t.Errorf("of two relations: %q", got)
	}
	if none := must(g.OfRelations(1)); none.EdgeFeatures != nil {
		t.Errorf("a relation without features has %+v", none.EdgeFeatures)
	}
	if got := featuresOf(g.Subgraph([]int32{0, 2, 3})); !slices.Equal(got, []string{"2 makes 0 [30]", "0 likes 1 [2 200]"}) {
		t.Errorf("of a subset: %q", got)
	}
	without := must(g.Without(must(g.OfRelations(1, 0)).withNumbers(t, g.Schema, []uint16{1, 0}), 1))
	if got := featuresOf(without); !slices.Equal(got, []string{"3 makes 0 [30]", "4 makes 1 [41]"}) {
		t.Errorf("without two relations: %q", got)
	}
	if h := g.Homogeneous(); h.EdgeFeatures.ByRelation != nil || h.EdgeFeatures.Cols != 3 {
		t.Errorf("without types: %+v", h.EdgeFeatures)
	}
	twice := must(FromEdgesWith(5, []int32{0, 0, 3}, []int32{2, 2, 0}, EdgeData{Types: []uint16{0, 0, 1}, Features: must2(EdgeFeaturesByRelation([]uint16{0, 0, 1}, []*EdgeFeatures{{Cols: 2, F32: []float32{1, 2, 3, 6}}, {Cols: 1, F32: []float32{5}}}))}, BuildOptions{}))
	row := make([]float32, 2)
	if twice.EdgeFeatures.CopyRow(row, 1); twice.NumEdges() != 2 || !slices.Equal(row, []float32{2, 4}) {
		t.Errorf("equal edges become one with the features %v", row)
	}
}

func must2(x *EdgeFeatures, err error) *EdgeFeatures {
	if err != nil {
		panic(err)
	}
	return x
}

// withNumbers returns the graph with the types of another schema: type t becomes of[t].
func (g *Graph) withNumbers(t *testing.T, s *Schema, of []uint16) *Graph {
	t.Helper()
	types := slices.Clone(g.EdgeTypes)
	for e := range types {
		types[e] = of[types[e]]
	}
	h, err := g.WithEdgeData(nil, nil).WithTypes(s, types)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestEdgeFeaturesByRelationRefuses(t *testing.T) {
	types := []uint16{0, 1, 1}
	one := &EdgeFeatures{Cols: 1, F32: []float32{1}}
	for _, c := range []struct {
		of   []*EdgeFeatures
		want string
	}{
		{[]*EdgeFeatures{one}, "edge 1 has the type 1, but there are features of 1 relations"},
		{[]*EdgeFeatures{one, {Cols: 2, F32: []float32{1, 2}}}, "2 elements of edge features, but 2 edges with 2 columns need 4: the features of relation 1"},
		{[]*EdgeFeatures{one, {Cols: 1, F16: []uint16{1, 2}}}, "relation 0 and of relation 1 are not both float32"},
		{[]*EdgeFeatures{nil, nil}, "none of 2 relations has edge features"},
	} {
		if _, err := EdgeFeaturesByRelation(types, c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, not %q", err, c.want)
		}
	}
	g := wideEdges(t, false)
	other := slices.Clone(g.EdgeTypes)
	other[0], other[1] = 2, 1
	if _, err := g.WithTypes(nil, other); err == nil || !strings.Contains(err.Error(), "the edge features are by relation") {
		t.Errorf("other types: %v", err)
	}
	bad := must2(EdgeFeaturesByRelation([]uint16{0}, []*EdgeFeatures{one}))
	if _, err := FromEdgesWith(3, []int32{0}, []int32{1}, EdgeData{Types: []uint16{1}, Features: bad}, BuildOptions{}); err == nil || !strings.Contains(err.Error(), "of edges of other types") {
		t.Errorf("features of other types: %v", err)
	}
}
