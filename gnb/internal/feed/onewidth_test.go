package feed

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Rows of dense, half, sparse and missing features stand in one matrix, each before zeros; the rest is shared.
func TestOneWidth(t *testing.T) {
	types := []graphops.NodeType{{Name: "dense", Count: 2}, {Name: "half", Count: 1}, {Name: "empty", Count: 0}, {Name: "sparse", Count: 2}, {Name: "ones", Count: 1}, {Name: "none", Count: 1}}
	g := &graphops.Graph{Indptr: make([]int64, 8), Indices: []int32{}, EdgeTypes: []uint16{}, Schema: &graphops.Schema{Nodes: types}}
	half, err := (&dataset.Matrix{Rows: 1, Cols: 2, F32: []float32{0.5, -2}}).Float16()
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{
		Graph: g, Labels: make([]int32, 7), Meta: dataset.Metadata{Name: "types", NumClasses: 1},
		NodeFeatures: []dataset.NodeFeatures{
			{Dense: &dataset.Matrix{Rows: 2, Cols: 1, F32: []float32{1, 2}}},
			{Dense: half},
			{Dense: &dataset.Matrix{Cols: 3}},
			{Sparse: &dataset.Sparse{Rows: 2, Cols: 3, Indptr: []int64{0, 0, 2}, Indices: []int32{0, 2}, Values: []float32{5, 6}}},
			{Sparse: &dataset.Sparse{Rows: 1, Cols: 2, Indptr: []int64{0, 1}, Indices: []int32{1}}},
			{},
		},
	}
	one, err := OneWidth(t.Context(), ds, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{1, 0, 0, 2, 0, 0, 0.5, -2, 0, 0, 0, 0, 5, 0, 6, 0, 1, 0, 0, 0, 0}
	if one.FeatureDim() != 3 || !slices.Equal(one.Features.F32, want) {
		t.Errorf("the features are %v in %d columns, want %v in 3", one.Features.F32, one.FeatureDim(), want)
	}
	if one.NodeFeatures != nil || one.Schema() != g.Schema || &one.Labels[0] != &ds.Labels[0] || ds.Features != nil {
		t.Error("the dataset keeps the features of types, or does not share the rest")
	}
	for name, same := range map[string]*dataset.Dataset{"no dataset": nil, "no features": {Graph: g}, "features of one width": one} {
		if got, err := OneWidth(t.Context(), same, true); got != same || err != nil {
			t.Errorf("%s: another dataset, or %v", name, err)
		}
	}
}

// Where compressed rows are much smaller than a matrix, the features are sparse: those of dense types with all their
// numbers, those of sparse types as they are, and no elements of the others. All elements are 1 without values alone.
func TestOneWidthStaysSparse(t *testing.T) {
	types := []graphops.NodeType{{Name: "words", Count: 2}, {Name: "dense", Count: 1}, {Name: "none", Count: 3}, {Name: "values", Count: 1}}
	g := &graphops.Graph{Indptr: make([]int64, 8), Indices: []int32{}, EdgeTypes: []uint16{}, Schema: &graphops.Schema{Nodes: types}}
	ds := &dataset.Dataset{
		Graph: g, Meta: dataset.Metadata{Name: "types"},
		NodeFeatures: []dataset.NodeFeatures{
			{Sparse: &dataset.Sparse{Rows: 2, Cols: 1000, Indptr: []int64{0, 2, 2}, Indices: []int32{1, 999}}},
			{Dense: &dataset.Matrix{Rows: 1, Cols: 2, F32: []float32{4, 0}}},
			{},
			{Sparse: &dataset.Sparse{Rows: 1, Cols: 7, Indptr: []int64{0, 1}, Indices: []int32{6}, Values: []float32{3}}},
		},
	}
	one, err := OneWidth(t.Context(), ds, true)
	if err != nil {
		t.Fatal(err)
	}
	s := one.SparseFeatures
	if one.Features != nil || s == nil || s.Rows != 7 || s.Cols != 1000 || one.FeatureDim() != 1000 {
		t.Fatalf("the features are %v, want sparse ones [7, 1000]", one)
	}
	if !slices.Equal(s.Indptr, []int64{0, 2, 2, 4, 4, 4, 4, 5}) || !slices.Equal(s.Indices, []int32{1, 999, 0, 1, 6}) || !slices.Equal(s.Values, []float32{1, 1, 4, 0, 3}) {
		t.Errorf("the rows are %v, the columns %v, the values %v", s.Indptr, s.Indices, s.Values)
	}
	if one.Meta.FeatureFormat != dataset.FormatCSR || ds.NodeFeatures == nil {
		t.Errorf("the format is %q", one.Meta.FeatureFormat)
	}
	ds.NodeFeatures[1], ds.NodeFeatures[3] = dataset.NodeFeatures{}, dataset.NodeFeatures{}
	if one, err = OneWidth(t.Context(), ds, true); err != nil || one.SparseFeatures.Values != nil || one.Meta.FeatureFormat != dataset.FormatCSROnes {
		t.Errorf("features of ones have values, or %v", err)
	}
}
