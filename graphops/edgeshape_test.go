package graphops

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func TestEdgeShape(t *testing.T) {
	for _, c := range []struct {
		s     EdgeShape
		bytes int
		text  string
	}{
		{EdgeShape{}, 0, "nothing"},
		{EdgeShape{Weighted: true}, 4, "a weight"},
		{EdgeShape{FeatureCols: 3, Times: true}, 20, "3 features in float32, a time"},
		{EdgeShape{Weighted: true, FeatureCols: 5, Half: true}, 14, "a weight, 5 features in float16"},
	} {
		if c.s.Bytes() != c.bytes || c.s.String() != c.text {
			t.Errorf("%+v has %d bytes and is %q; want %d and %q", c.s, c.s.Bytes(), c.s, c.bytes, c.text)
		}
		var d EdgeData
		for _, n := range []int{7, 0, 3} { // memory is reused
			if d.SetLen(c.s, n); d.Shape() != c.s || !d.Has(c.s, n) || c.bytes > 0 && d.Has(c.s, n+1) || d.Has(EdgeShape{FeatureCols: 9}, n) {
				t.Errorf("%d edges of %v have %v", n, c.s, d.Shape())
			}
		}
	}
}

// Appending, copying and picking edges moves everything that they have.
func TestEdgeDataMoves(t *testing.T) {
	for _, half := range []bool{false, true} {
		src := EdgeData{Weights: []float32{1, 2, 3, 4}, Times: []int64{-1, 5, 6, 7}, Features: &EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6, 7, 8}}}
		if half {
			src.Features = &EdgeFeatures{Cols: 2, F16: halves(src.Features.F32)}
		}
		of := func(d EdgeData, e int) string {
			row := make([]float32, 2)
			d.Features.CopyRow(row, int64(e))
			return fmt.Sprint(d.Weights[e], d.Times[e], row)
		}
		all := func(d EdgeData, n int) (list []string) {
			for e := range n {
				list = append(list, of(d, e))
			}
			return list
		}
		var d EdgeData
		d.SetLen(src.Shape(), 0)
		d.Append(src.Slice(1, 3))
		d.Append(src)
		want := []string{of(src, 1), of(src, 2), of(src, 0), of(src, 1), of(src, 2), of(src, 3)}
		if got := all(d, 6); !slices.Equal(got, want) {
			t.Errorf("appended: %v, want %v", got, want)
		}
		d.CopyRange(3, &src, 2, 4)
		d.Pick(0, &src, 1, []int32{2, 0})
		want[3], want[4], want[0], want[1] = of(src, 2), of(src, 3), of(src, 3), of(src, 1)
		if got := all(d, 6); !slices.Equal(got, want) {
			t.Errorf("copied and picked: %v, want %v", got, want)
		}
		g := (&Graph{Indptr: []int64{0, 4}, Indices: make([]int32, 4)}).WithEdges(src)
		if !reflect.DeepEqual(g.EdgeData(), src) || g.EdgeShape() != src.Shape() {
			t.Errorf("the graph has %+v", g.EdgeData())
		}
	}
}
