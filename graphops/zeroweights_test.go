package graphops

import (
	"slices"
	"testing"
)

// Edges of weight 0 leave a graph with all their data; the others keep theirs.
func TestWithoutZeroWeights(t *testing.T) {
	negative := float32(0)
	negative = -negative
	for name, c := range map[string]struct {
		src, dst []int32
		w        []float32
		zeros    int64
		indptr   []int64
		indices  []int32
	}{
		"none":           {[]int32{0, 1}, []int32{2, 2}, []float32{1, 2}, 0, []int64{0, 0, 0, 2}, []int32{0, 1}},
		"one of three":   {[]int32{0, 1, 2}, []int32{2, 2, 0}, []float32{0, 2, 3}, 1, []int64{0, 1, 1, 2}, []int32{2, 1}},
		"all":            {[]int32{0, 1}, []int32{2, 0}, []float32{0, negative}, 2, []int64{0, 0, 0, 0}, nil},
		"merged to more": {[]int32{0, 0}, []int32{1, 1}, []float32{0, 2}, 0, []int64{0, 0, 1, 1}, []int32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			times, features := make([]int64, len(c.src)), &EdgeFeatures{Cols: 1}
			for _, w := range c.w {
				features.F32 = append(features.F32, 10*w)
			}
			g, err := FromEdgesWith(3, c.src, c.dst, EdgeData{Weights: c.w, Times: times, Features: features}, BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if name == "merged to more" {
				g = g.WithEdgeData(nil, g.EdgeTimes)
			}
			rest, zeros := g.WithoutZeroWeights()
			if zeros != c.zeros || !slices.Equal(rest.Indptr, c.indptr) || !slices.Equal(rest.Indices, c.indices) {
				t.Fatalf("%d edges go, %v %v stay; want %d, %v %v", zeros, rest.Indptr, rest.Indices, c.zeros, c.indptr, c.indices)
			}
			if (zeros == 0) != (rest == g) {
				t.Error("a graph is another one only if edges go")
			}
			for e, w := range rest.EdgeWeights {
				var row [1]float32
				if rest.EdgeFeatures != nil {
					if rest.EdgeFeatures.CopyRow(row[:], int64(e)); row[0] != 10*w {
						t.Errorf("edge %d has weight %v and feature %v", e, w, row[0])
					}
				}
			}
			if int64(len(rest.EdgeTimes)) != rest.NumEdges() {
				t.Errorf("%d times for %d edges", len(rest.EdgeTimes), rest.NumEdges())
			}
			if again, n := g.WithoutZeroWeights(); again != rest || n != zeros {
				t.Error("a second call gives another graph")
			}
			if more, n := rest.WithoutZeroWeights(); more != rest || n != 0 {
				t.Error("edges of weight 0 are left")
			}
		})
	}
}
