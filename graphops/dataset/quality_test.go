package dataset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Graphs are equal if their arrays are, wherever their nodes are; labels tell whether equal ones contradict each other.
func TestDuplicatesOfGraphs(t *testing.T) {
	// Four paths of three nodes, a triangle, and a graph without nodes. Path 3 has other features.
	var src, dst []int32
	for _, lo := range []int32{0, 3, 6, 9, 12} {
		src, dst = append(src, lo, lo+1), append(dst, lo+1, lo+2)
	}
	src, dst = append(src, 12), append(dst, 14)
	g, err := graphops.FromEdges(15, src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &dataset.Dataset{
		Graph: g, Features: &dataset.Matrix{Rows: 15, Cols: 1, F32: slices.Repeat([]float32{0, 1, 2}, 5)}, GraphOffsets: []int64{0, 3, 6, 9, 12, 15, 15},
		Graphs: &dataset.Dataset{Labels: []int32{0, 1, 0, 0, 1, 1}, Splits: map[string][]int32{"train": {0, 4}, "val": {1}, "test": {2, 3, 5}}, Meta: dataset.Metadata{NumClasses: 2}},
		Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "d", Undirected: true},
	}
	d.Features.F32[10] = 7
	r, err := d.Duplicates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "{graphs 5 1 2 [{val train 1 1} {test train 1 0} {test val 1 1}]}"; fmt.Sprint(*r) != want {
		t.Errorf("the duplicates are %v, want %s", *r, want)
	}
	if s := d.GraphSizes(); s != (dataset.GraphSizes{Graphs: 6, Nodes: dataset.Spread{Min: 0, Median: 3, Max: 3}, Edges: dataset.Spread{Min: 0, Median: 4, Max: 6}, WithoutNodes: 1, WithoutEdges: 1}) {
		t.Errorf("the sizes are %v", s)
	}
}

// Nodes are equal by their features, dense or sparse; rows of zeros say nothing.
func TestDuplicatesOfNodes(t *testing.T) {
	g := &graphops.Graph{Indptr: make([]int64, 6)}
	splits := map[string][]int32{"train": {0}, "test": {1, 3, 4}}
	for name, d := range map[string]*dataset.Dataset{
		"dense":   {Features: &dataset.Matrix{Rows: 5, Cols: 2, F32: []float32{1, 0, 1, 0, 0, 0, 0, 1, 1, 0}}},
		"float16": {Features: &dataset.Matrix{Rows: 5, Cols: 2, F16: []uint16{1, 0, 1, 0, 0, 0, 0, 1, 1, 0}}},
		"sparse":  {SparseFeatures: &dataset.Sparse{Rows: 5, Cols: 2, Indptr: []int64{0, 1, 2, 2, 3, 4}, Indices: []int32{0, 0, 1, 0}}},
	} {
		d.Graph, d.Splits, d.Labels = g, splits, []int32{0, 0, 0, 0, 1}
		r, err := d.Duplicates(t.Context())
		if want := "{nodes 4 1 2 [{test train 2 1}]}"; err != nil || fmt.Sprint(*r) != want {
			t.Errorf("%s: the duplicates are %v (%v), want %s", name, r, err, want)
		}
	}
	if r, err := (&dataset.Dataset{Graph: g}).Duplicates(t.Context()); r != nil || err != nil {
		t.Errorf("without features there are %v (%v)", r, err)
	}
}

func TestTargetRanges(t *testing.T) {
	d := molecules(t)
	all := d.Graphs.TargetRanges(nil)
	if len(all) != 1 || all[0].Known != 3 || all[0].Unknown != 1 || all[0].Min != -1.5 || all[0].Max != 2 || all[0].Mean < 0.16 || all[0].Mean > 0.17 {
		t.Errorf("the targets are %v", all)
	}
	if got := d.TargetRanges([]int32{2, 3})[1]; got.String() != "y: 40 to 40, mean 40, deviation 0; 1 of 2 unknown" {
		t.Errorf("the target of two nodes is %v", got)
	}
	if got := d.TargetRanges([]int32{2})[0]; got.String() != "x: no known value" {
		t.Errorf("an unknown target is %v", got)
	}
}
