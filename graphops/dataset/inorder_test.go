package dataset

import (
	"errors"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Features are matched by their names, however they are stored, and what is missing is named.
func TestInOrder(t *testing.T) {
	g, err := graphops.FromEdges(2, []int32{0}, []int32{1}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	half, err := (&Matrix{Rows: 2, Cols: 3, F32: []float32{1, 2, 3, 4, 5, 6}}).Float16()
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]NodeFeatures{
		"dense":  {Dense: &Matrix{Rows: 2, Cols: 3, F32: []float32{1, 2, 3, 4, 5, 6}}},
		"half":   {Dense: half},
		"sparse": {Sparse: &Sparse{Rows: 2, Cols: 3, Indptr: []int64{0, 3, 6}, Indices: []int32{0, 1, 2, 0, 1, 2}, Values: []float32{1, 2, 3, 4, 5, 6}}},
	} {
		d := &Dataset{Graph: g, Features: x.Dense, SparseFeatures: x.Sparse, Meta: Metadata{Name: "d", FeatureNames: []string{"a", "b", "c"}}}
		for _, tc := range []struct {
			want []string
			x    []float32
			said notice.Kind
		}{
			{[]string{"a", "b", "c"}, []float32{1, 2, 3, 4, 5, 6}, ""},
			{[]string{"c", "a", "b"}, []float32{3, 1, 2, 6, 4, 5}, notice.Renumbered},
			{[]string{"c", "a"}, []float32{3, 1, 6, 4}, notice.Dropped},
		} {
			var said notice.List
			got, err := d.InOrder(map[string][]string{"": tc.want}, said.Add)
			if err != nil {
				t.Fatal(err)
			}
			var rows []float32
			if s := got.SparseFeatures; s != nil {
				if !slices.Equal(s.Indices, append(slices.Clone(s.Indices[:s.Indptr[1]]), s.Indices[:s.Indptr[1]]...)) || !slices.IsSorted(s.Indices[:s.Indptr[1]]) {
					t.Errorf("%s: the columns are %v", name, s.Indices)
				}
				rows = s.Values
			} else {
				rows = got.Features.Float32().F32
			}
			if !slices.Equal(rows, tc.x) || (tc.said == "") != (len(said) == 0) || tc.said != "" && said[0].Kind != tc.said {
				t.Errorf("%s, %v: the features are %v, want %v; said %v", name, tc.want, rows, tc.x, said)
			}
			if !slices.Equal(got.NamedFeatures()[""], tc.want) || (got == d) != (tc.said == "") {
				t.Errorf("%s: the names are %v", name, got.NamedFeatures())
			}
		}
		var missing *FeatureNamesError
		if _, err := d.InOrder(map[string][]string{"": {"a", "z"}}, nil); !errors.As(err, &missing) || !slices.Equal(missing.Missing, []string{"z"}) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if got, err := d.InOrder(nil, nil); err != nil || got != d {
			t.Errorf("%s: without names: %v, %v", name, got, err)
		}
	}
}
