package dataset_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// molecules is a dataset of four graphs, the third of which has no nodes, with everything that graphs can have.
func molecules(t *testing.T) *dataset.Dataset {
	t.Helper()
	g, err := graphops.FromEdges(6, []int32{0, 1, 3, 4}, []int32{1, 2, 4, 5}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	d := &dataset.Dataset{
		Graph: g, Features: &dataset.Matrix{Rows: 6, Cols: 1, F32: []float32{1, 2, 3, 4, 5, 6}},
		Targets:      &dataset.Matrix{Rows: 6, Cols: 2, F32: []float32{1, nan, 2, 20, nan, nan, 4, 40, 5, 50, 6, 60}},
		GraphOffsets: []int64{0, 3, 5, 5, 6},
		Graphs: &dataset.Dataset{
			Labels:   []int32{0, 1, -1, 1},
			Features: &dataset.Matrix{Rows: 4, Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6, 7, 8}},
			Targets:  &dataset.Matrix{Rows: 4, Cols: 1, F32: []float32{-1.5, nan, 0, 2}},
			Splits:   map[string][]int32{"train": {0, 3}, "test": {1}, "train@1": {1, 3}, "test@1": {0}},
			Meta:     dataset.Metadata{NumClasses: 2},
		},
		Splits: map[string][]int32{},
		Meta:   dataset.Metadata{Name: "molecules", Undirected: true, TargetNames: []string{"x", "y"}},
	}
	// The edge 3–4 would lead from graph 1 to itself and 4–5 to graph 3.
	d.Graph, err = graphops.FromEdges(6, []int32{0, 1, 3}, []int32{1, 2, 4}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sameFloats(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// Targets and the graphs of a dataset of many survive a directory and shared memory with the same digests; views by split sets
// choose those of graphs, also in a process that opens the directory.
func TestTargetsAndGraphsAreKept(t *testing.T) {
	d := molecules(t)
	ctx := context.Background()
	want, err := d.Digests(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	f, err := d.Share(ctx, dataset.CheckOnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := dataset.OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	for name, got := range map[string]*dataset.Dataset{"directory": opened, "memory": shared} {
		if err := got.Check(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if digests, err := got.Digests(ctx, nil); err != nil || digests != want {
			t.Errorf("%s: digests %v (%v), want %v", name, digests, err, want)
		}
		if !sameFloats(got.Targets.F32, d.Targets.F32) || !sameFloats(got.Graphs.Targets.F32, d.Graphs.Targets.F32) {
			t.Errorf("%s: the targets differ", name)
		}
		if got.NumGraphs() != 4 || got.Graphs.Nodes() != 4 || got.Graphs.Classes() != 2 || got.TargetDim() != 2 || got.Meta.TargetNames[1] != "y" {
			t.Errorf("%s: %v", name, got)
		}
		view, err := got.WithSplitSet(1)
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := view.Graphs.Split("train"); err != nil || len(ids) != 2 || ids[0] != 1 {
			t.Errorf("%s: set 1 trains on the graphs %v (%v)", name, ids, err)
		}
		if name == "directory" && (!got.Stored() || !view.Stored()) {
			t.Error("another process that opens the directory would not get the dataset")
		}
	}
	opened.Graphs.Labels = []int32{1, 1, 1, 1}
	if opened.Stored() {
		t.Error("a dataset with replaced labels of graphs passes as the one of its directory")
	}
	d.Graphs.Targets.F32[3] = 3
	if changed, err := d.Digests(ctx, nil); err != nil || changed.Labels == want.Labels {
		t.Errorf("a changed target of a graph has the same digest (%v)", err)
	}
}

func TestSubsetOfGraphs(t *testing.T) {
	d := molecules(t)
	s, err := d.SubsetOfGraphs([]int32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.NumGraphs() != 3 || s.Nodes() != 3 || s.Edges() != 2 || s.Features.F32[0] != 4 || s.Graphs.Labels[2] != 1 || s.Target(1)[1] != 50 {
		t.Errorf("%v", s)
	}
	if lo, hi := s.GraphSpan(2); lo != 2 || hi != 3 {
		t.Errorf("the last graph has the nodes %d to %d", lo, hi-1)
	}
	if train := s.Graphs.Splits["train"]; len(train) != 1 || train[0] != 2 {
		t.Errorf("train has %v", train)
	}
	if _, err := d.Subset([]int32{0, 1}); err == nil || !strings.Contains(err.Error(), "SubsetOfGraphs") {
		t.Errorf("a subset of nodes: %v", err)
	}
	if _, err := s.SubsetOfGraphs([]int32{2, 1}); err == nil {
		t.Error("graphs in descending order are accepted")
	}
}

func TestBadGraphsAreNamed(t *testing.T) {
	for _, c := range []struct {
		why   string
		spoil func(d *dataset.Dataset)
		want  string
	}{
		{"an edge between graphs", func(d *dataset.Dataset) { d.GraphOffsets = []int64{0, 2, 5, 5, 6} }, "leads out of its graph"},
		{"offsets that descend", func(d *dataset.Dataset) { d.GraphOffsets = []int64{0, 5, 3, 5, 6} }, "graph_offsets.npy"},
		{"too few graphs", func(d *dataset.Dataset) { d.GraphOffsets = []int64{0, 3, 6} }, "for 2 graphs"},
		{"offsets short of the nodes", func(d *dataset.Dataset) { d.GraphOffsets = []int64{0, 3, 5, 5, 5} }, "run from 0 to 5"},
		{"an infinite target", func(d *dataset.Dataset) { d.Targets.F32[3] = float32(math.Inf(1)) }, "targets.npy"},
		{"an infinite target of a graph", func(d *dataset.Dataset) { d.Graphs.Targets.F32[2] = float32(math.Inf(-1)) }, "graph"},
		{"a class too high", func(d *dataset.Dataset) { d.Graphs.Labels[0] = 2 }, "classes are 0 to 1"},
		{"a graph in two splits", func(d *dataset.Dataset) { d.Graphs.Splits["test"] = []int32{3} }, "also in split train"},
		{"a split of graphs that are not there", func(d *dataset.Dataset) { d.Graphs.Splits["test"] = []int32{4} }, "0 to 3"},
		{"names of targets", func(d *dataset.Dataset) { d.Meta.TargetNames = []string{"x"} }, "1 names for 2 targets"},
	} {
		d := molecules(t)
		c.spoil(d)
		if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, molecules(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "graph_labels.npy")); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Open(dir); err == nil || !strings.Contains(err.Error(), "graph_labels.npy") {
		t.Errorf("without graph_labels.npy: %v", err)
	}
}
