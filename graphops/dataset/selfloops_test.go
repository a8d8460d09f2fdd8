package dataset

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWithSelfLoops(t *testing.T) {
	d := Karate()
	edges := d.Edges()
	s, err := d.WithSelfLoops()
	if err != nil {
		t.Fatal(err)
	}
	if s.Nodes() != d.Nodes() || s.Edges() != edges+int64(d.Nodes()) || d.Edges() != edges || s.Meta.NumEdges != s.Edges() {
		t.Errorf("%d edges, and %d in the metadata; want one self-loop for each of %d nodes in addition to %d", s.Edges(), s.Meta.NumEdges, d.Nodes(), edges)
	}
	for v := range int32(d.Nodes()) {
		without := slices.DeleteFunc(slices.Clone(s.Graph.InNeighbors(v)), func(u int32) bool { return u == v })
		if !slices.Equal(without, d.Graph.InNeighbors(v)) || len(without)+1 != len(s.Graph.InNeighbors(v)) {
			t.Errorf("in-neighbours of %d are %v, before %v", v, s.Graph.InNeighbors(v), d.Graph.InNeighbors(v))
		}
	}
	if &s.Features.F32[0] != &d.Features.F32[0] || &s.Labels[0] != &d.Labels[0] || !slices.Equal(s.SplitNames(), d.SplitNames()) {
		t.Error("features, labels and splits are not shared")
	}
	if again, err := s.WithSelfLoops(); err != nil || again.Edges() != s.Edges() {
		t.Errorf("adding self-loops twice changed the graph (%v)", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	// Adding self-loops to a directory's dataset gives a dataset in memory.
	dir := filepath.Join(t.TempDir(), "set")
	if err := Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if s, err := opened.WithSelfLoops(); err != nil || s.Dir() != "" || s.Edges() != edges+int64(d.Nodes()) {
		t.Errorf("a dataset from a directory gave %v, %v", s, err)
	}
	weighted := Karate()
	weighted.Graph.EdgeWeights = make([]float32, weighted.Edges())
	if _, err := weighted.WithSelfLoops(); err == nil || !strings.Contains(err.Error(), "edge weights") {
		t.Errorf("a graph with weights gave %v, want an error that says so", err)
	}
}
