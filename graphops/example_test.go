package graphops_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// Three papers cite paper 0, and paper 3 cites paper 1 as well; messages flow
// from the citing paper to the cited one.
func ExampleFromEdges() {
	src := []int32{3, 1, 2, 3}
	dst := []int32{0, 0, 0, 1}
	g, err := graphops.FromEdges(4, src, dst, graphops.BuildOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	fmt.Println(g.InNeighbors(0), g.InDegrees())
	// Output:
	// graph: 4 nodes, 4 edges; 1.0 in-edges per node, at most 3, 2 nodes without
	// [1 2 3] [3 1 0 0]
}

func ExampleFromEdges_undirected() {
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{1, 2}, graphops.BuildOptions{Undirected: true, SelfLoops: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for v := range int32(3) {
		fmt.Println(v, g.InNeighbors(v))
	}
	// Output:
	// 0 [0 1]
	// 1 [0 1 2]
	// 2 [1 2]
}

func ExampleGraph_Reverse() {
	g, err := graphops.FromEdges(3, []int32{1, 2}, []int32{0, 0}, graphops.BuildOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := g.Reverse(0)
	fmt.Println(r.InNeighbors(0), r.InNeighbors(1), r.InNeighbors(2))
	// Output: [] [0] [0]
}

func ExampleGraph_Validate() {
	g := &graphops.Graph{Indptr: []int64{0, 2, 3}, Indices: []int32{0, 1, 5}}
	fmt.Println(g.Validate())
	// Output: graphops: invalid graph: Indices[2]: source 5 of node 1, but the graph has the nodes 0 to 1
}
