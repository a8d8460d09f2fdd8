// Package graphops provides graphs on the CPU: the Graph type, its transforms, and the blocks that
// layers compute on. Its subpackages provide datasets, samplers, tensors and layers.
package graphops

import "fmt"

var (
	_ Degrees = (*Graph)(nil)
	_ Slicer  = (*Graph)(nil)
)

// Graph is a directed graph stored by destination (compressed sparse columns):
// Indices[Indptr[v]:Indptr[v+1]] are the sources of v's in-edges, ascending. Messages flow from
// sources to destinations. An undirected graph holds both directions of each edge.
//
// Node ids are int32, so a graph has at most 2^31-1 nodes; edge positions are int64. A Graph is
// read-only once built and safe for concurrent use. Its arrays may be in a mapped file and must not
// be written to.
type Graph struct {
	Indptr  []int64 // [NumNodes+1], ascending, Indptr[0] = 0
	Indices []int32 // [NumEdges]
	// EdgeWeights are the weights of the edges [NumEdges] by CSC position, finite and, in a
	// dataset, not negative, or nil if every edge has weight 1: see [Graph.WithEdgeWeights]. An edge of
	// weight 0 is masked: see [Graph.WithoutZeroWeights].
	// Transforms return graphs without weights, features, times and types, unless they say otherwise;
	// [Graph.Rebuild] keeps them.
	EdgeWeights []float32
	// EdgeFeatures are the features of the edges by CSC position, finite, or nil if they have none:
	// see [Graph.WithEdgeData].
	EdgeFeatures *EdgeFeatures
	// EdgeTimes are the times of the edges [NumEdges] by CSC position, in any unit, or nil if they have
	// none.
	EdgeTimes []int64
	// EdgeTypes are the types of the edges [NumEdges] by CSC position: relation numbers of Schema, below
	// [LoopType]. They ascend within equal edges. It is nil if all edges have one type. See
	// [Graph.WithTypes].
	EdgeTypes []uint16
	// Schema names the types of nodes and edges. It is nil if nodes have no types; edges may have types
	// all the same.
	Schema *Schema

	looped *loopedDegrees // created by WithEdgeWeights
	loops  int32          // accessed atomically; see withoutLoops
	zeros  *zeroWeights   // created where looped is
	byTime *timeOrders    // created where times or types are set
}

// NumNodes is the number of nodes.
func (g *Graph) NumNodes() int { return len(g.Indptr) - 1 }

// NumEdges is the number of directed edges.
func (g *Graph) NumEdges() int64 { return int64(len(g.Indices)) }

// InDegree is the number of in-edges of node v.
func (g *Graph) InDegree(v int32) int { return int(g.Indptr[v+1] - g.Indptr[v]) }

// InNeighbors returns the sources of v's in-edges, ascending. The slice is the graph's own memory
// and must not be written to.
func (g *Graph) InNeighbors(v int32) []int32 { return g.Indices[g.Indptr[v]:g.Indptr[v+1]] }

// String returns a summary in one line. Cost: O(nodes).
func (g *Graph) String() string {
	n, most, alone := g.NumNodes(), 0, 0
	for v := range n {
		d := g.InDegree(int32(v))
		most = max(most, d)
		if d == 0 {
			alone++
		}
	}
	s := fmt.Sprintf("graph: %d nodes, %d edges", n, g.NumEdges())
	if g.EdgeWeights != nil {
		s += " with weights"
	}
	if g.EdgeFeatures != nil {
		s += fmt.Sprintf(" with %d features", g.EdgeFeatures.Cols)
	}
	if g.EdgeTimes != nil {
		s += " with times"
	}
	if g.Schema != nil {
		s += fmt.Sprintf(" of %d relations between %d types", len(g.Schema.Relations), len(g.Schema.Nodes))
	} else if g.EdgeTypes != nil {
		s += " with types"
	}
	if n > 0 {
		s += fmt.Sprintf("; %.1f in-edges per node, at most %d", float64(g.NumEdges())/float64(n), most)
	}
	if alone > 0 {
		s += fmt.Sprintf(", %d nodes without", alone)
	}
	return s
}

// Block returns the whole graph as one block: every node is a source and a destination. It shares
// the graph's arrays.
func (g *Graph) Block() *Block { return g.Slice(0, g.NumNodes()) }

// Slice returns the block whose destinations are the nodes [lo, hi), with all their in-edges, and
// whose sources are all nodes. It shares the graph's arrays; its cost does not depend on the number
// of edges.
func (g *Graph) Slice(lo, hi int) *Block {
	h := HostBlock{NumDst: hi - lo, NumSrc: g.NumNodes(), DstStart: lo, Indptr: g.Indptr[lo : hi+1], Indices: g.Indices, Graph: g}
	if g.EdgeWeights != nil {
		h.Weights = g.EdgeWeights[g.Indptr[lo]:g.Indptr[hi]]
	}
	return h.Block()
}
