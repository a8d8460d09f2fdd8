package graphops_test

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

func built(t *testing.T, nodes int, src, dst []int32, o graphops.BuildOptions) *graphops.Graph {
	t.Helper()
	g, err := graphops.FromEdges(nodes, src, dst, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A triangle, an edge, a node with a loop alone, and a node without edges.
func TestShape(t *testing.T) {
	g := built(t, 7, []int32{0, 1, 2, 3, 5}, []int32{1, 2, 0, 4, 5}, graphops.BuildOptions{})
	want := graphops.Shape{Nodes: 7, Edges: 5, SelfLoops: 1, Isolated: 2, Components: 4, Largest: 3, InDegree: [5]int{0, 1, 1, 1, 1}, MeanDegree: 5. / 7}
	if got := g.Shape(); got != want {
		t.Errorf("the shape is %+v, want %+v", got, want)
	}
	star := built(t, 101, nil, nil, graphops.BuildOptions{})
	if got := star.Shape(); got.Components != 101 || got.Isolated != 101 || got.Largest != 1 {
		t.Errorf("a graph without edges has the shape %+v", got)
	}
	if got := built(t, 0, nil, nil, graphops.BuildOptions{}).Shape(); got != (graphops.Shape{}) {
		t.Errorf("an empty graph has the shape %+v", got)
	}
}

// The measures by hand, on a path 0-1-2-3 with classes a a b b and a node without a label at its end.
func TestHomophily(t *testing.T) {
	path := built(t, 5, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 4}, graphops.BuildOptions{Undirected: true})
	h := path.Homophily([]int32{0, 0, 1, 1, -1})
	// 3 undirected edges count, 2 within a class. The nodes' shares are 1, 1/2, 1/2 and 1. Both classes have half of the ends.
	if h.Edges != 6 || h.Nodes != 4 || math.Abs(h.Edge-2./3) > 1e-15 || math.Abs(h.Node-0.75) > 1e-15 || math.Abs(h.Adjusted-(2./3-0.5)/0.5) > 1e-15 {
		t.Errorf("the path has %+v", h)
	}
	if h := path.Homophily([]int32{0, 1, 0, 1, 0}); h.Edge != 0 || h.Adjusted >= 0 {
		t.Errorf("classes in turn have %+v", h)
	}
	if h := path.Homophily([]int32{2, 2, 2, 2, 2}); h.Edge != 1 || !math.IsNaN(h.Adjusted) {
		t.Errorf("one class has %+v", h)
	}
	if h := path.Homophily([]int32{-1, -1, -1, -1, -1}); h.Edges != 0 || !math.IsNaN(h.Edge) || !math.IsNaN(h.Node) {
		t.Errorf("no labels have %+v", h)
	}
	g, class := graphops.Karate()
	if h := g.Homophily(class); h.Edges != 156 || h.Edge < 0.8 || h.Adjusted < 0.5 {
		t.Errorf("the karate club has %+v", h)
	}
}
