package graphops

import "math"

// Degrees gives what layers read about the nodes of a whole graph, also when its edges are not in
// this process. A [Graph] has these methods.
type Degrees interface {
	// InDegree is the number of in-edges of node v.
	InDegree(v int32) int
	// LoopedDegree is as [Graph.LoopedDegree].
	LoopedDegree(v int32) float32
	// SelfLoop is as [Graph.SelfLoop].
	SelfLoop(v int32) (weight float32, ok bool)
}

var _ Degrees = (*DegreeTable)(nil)

// DegreeTable holds the degrees of all nodes of a graph whose edges are elsewhere.
type DegreeTable struct {
	In     []int32   // [nodes] InDegree
	Looped []float32 // [nodes] LoopedDegree
	// Loops are the weights of self-loops [nodes], NaN where a node has none. Nil means that the graph
	// has no weights.
	Loops []float32
}

// InDegree implements [Degrees].
func (t *DegreeTable) InDegree(v int32) int { return int(t.In[v]) }

// LoopedDegree implements [Degrees].
func (t *DegreeTable) LoopedDegree(v int32) float32 { return t.Looped[v] }

// SelfLoop implements [Degrees]. Blocks ask it about weighted graphs only.
func (t *DegreeTable) SelfLoop(v int32) (weight float32, ok bool) {
	if t.Loops == nil || t.Loops[v] != t.Loops[v] {
		return 0, false
	}
	return t.Loops[v], true
}

// MeanLogDegree is the mean of log(d+1) over the in-degrees d of the nodes, by which PNA's layers scale; 0 for a graph without
// edges. Cost: a logarithm for each node.
func (g *Graph) MeanLogDegree() float64 {
	sum := 0.0
	for v := range int32(g.NumNodes()) {
		sum += math.Log(float64(g.InDegree(v) + 1))
	}
	return sum / float64(max(g.NumNodes(), 1))
}
