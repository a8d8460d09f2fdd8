package graphops

import "fmt"

// FromWeightedEdges is [FromEdges] for edges src[i] → dst[i] of weight w[i]. The weights become
// EdgeWeights of the returned graph. The weights of equal edges are added, in float64 and rounded
// once; with Undirected, an edge listed in both directions gets the sum of its two weights. With
// KeepDuplicates parallel edges keep their own weights, in ascending order. A self-loop added by
// SelfLoops has weight 1.
//
// It is [FromEdgesWith] with weights alone, with the same errors and cost.
func FromWeightedEdges(nodes int, src, dst []int32, w []float32, o BuildOptions) (*Graph, error) {
	if len(w) != len(src) {
		return nil, fmt.Errorf("graphops: %d weights for %d edges", len(w), len(src))
	}
	if w == nil {
		w = []float32{}
	}
	return FromEdgesWith(nodes, src, dst, EdgeData{Weights: w}, o)
}
