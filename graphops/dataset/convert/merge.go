package convert

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Merged says how many of the edges that were read repeat an earlier one.
type Merged struct {
	// Edges is the number of edges that were read, and Repeats that of those which repeat an earlier edge: the same source,
	// target, relation and time, or with Undirected the reverse of it.
	Edges, Repeats                 int64
	Undirected, Weighted, Featured bool
}

// String says what became of the repeats; "" if there are none.
func (m Merged) String() string {
	if m.Repeats == 0 {
		return ""
	}
	of, how := "an earlier equal one", "each is kept once"
	if m.Undirected {
		of += " or its reverse"
	}
	switch {
	case m.Weighted && m.Featured:
		how = "their weights are added and their features averaged"
	case m.Weighted:
		how = "their weights are added"
	case m.Featured:
		how = "their features are averaged"
	}
	return fmt.Sprintf("merged %d of %d edges into %s: %s", m.Repeats, m.Edges, of, how)
}

// Notice returns the notice for the repeats.
func (m Merged) Notice() notice.Notice {
	return notice.Notice{Kind: notice.Merged, What: m.String(), Count: m.Repeats, Of: m.Edges}
}

// Graph builds the graph of edges src[i] → dst[i] by the rule that all readers share: equal edges
// are merged first ([graphops.FromEdgesWith]), and only then weights that are all 1 are dropped, so that a merged edge
// keeps the sum of its weights.
func Graph(nodes int, src, dst []int32, data graphops.EdgeData, o graphops.BuildOptions) (*graphops.Graph, Merged, error) {
	m := Merged{Edges: int64(len(src)), Undirected: o.Undirected, Weighted: data.Weights != nil, Featured: data.Features != nil}
	g, err := graphops.FromEdgesWith(nodes, src, dst, data, o)
	if err != nil {
		return nil, m, err
	}
	m.Repeats = m.Edges - g.NumEdges()
	if o.Undirected { // an edge and its reverse are one, and a self-loop is its own reverse
		m.Repeats = m.Edges - (g.NumEdges()+selfLoops(g))/2
	}
	return WithoutOnes(g), m, nil
}

// WithoutOnes returns the graph without its weights if all are 1.
func WithoutOnes(g *graphops.Graph) *graphops.Graph {
	if g.EdgeWeights == nil || slices.ContainsFunc(g.EdgeWeights, func(w float32) bool { return w != 1 }) {
		return g
	}
	return g.WithEdgeWeights(nil)
}

func selfLoops(g *graphops.Graph) int64 {
	n := int64(0)
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			if u == v {
				n++
			}
		}
	}
	return n
}
