package walk_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/walk"
)

// Walks on a path leave its ends at once.
func ExampleWalker_Walks() {
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{1, 2}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		panic(err)
	}
	w, err := walk.New(g, walk.Options{Length: 2})
	if err != nil {
		panic(err)
	}
	walks, err := w.Walks(0, []int32{0, 2}, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(walks), walks[:2], walks[3:5])
	// Output: 6 [0 1] [2 1]
}

// The neighbours of a node are those where walks from it end most often.
func ExamplePageRank() {
	g, err := graphops.FromEdges(4, []int32{0, 1, 2}, []int32{1, 2, 3}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		panic(err)
	}
	near, err := walk.PageRank(g, walk.PageRankOptions{K: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(near)
	fmt.Println(near.InNeighbors(0))
	// Output:
	// graph: 4 nodes, 8 edges with weights; 2.0 in-edges per node, at most 2
	// [1 2]
}

// PinSAGE's neighbourhoods.
func ExampleVisited() {
	g, err := graphops.FromEdges(4, []int32{0, 1, 2}, []int32{1, 2, 3}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		panic(err)
	}
	near, err := walk.Visited(g, walk.VisitedOptions{K: 2, Walks: 1000})
	if err != nil {
		panic(err)
	}
	fmt.Println(near.InNeighbors(0))
	// Output: [1 2]
}
