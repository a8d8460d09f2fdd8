package pairs_test

import (
	"fmt"
	"log"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// A baseline: common neighbours in the graph without the test edges rank these edges above pairs
// of nodes without an edge.
func Example() {
	ds := dataset.Karate()
	s, err := pairs.Random(ds.Graph, pairs.SplitOptions{Undirected: true, Test: 0.2, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s)
	pos, err := pairs.AdamicAdar(s.Message, s.Test.Edges, 0)
	if err != nil {
		log.Fatal(err)
	}
	neg, err := pairs.AdamicAdar(s.Message, s.Test.Neg, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("better than chance:", pairs.AUC(pos, neg) > 0.5)
	// Output:
	// 120 edges as messages; to predict: 60 for training, 3 for validation, 15 for the test
	// better than chance: true
}

func ExampleNegatives() {
	ds := dataset.Karate()
	n, err := pairs.NewNegatives(ds.Graph, pairs.NegativeOptions{PerEdge: 3, Strict: true, Undirected: true, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	neg, err := n.Draw(0, 0, nil, pairs.Edges{Src: []int32{0}, Dst: []int32{1}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(neg.Src, neg.Len())
	// Output: [0 0 0] 3
}
