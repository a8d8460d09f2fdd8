package pairs_test

import (
	"fmt"
	"log"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
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

// Scores of embeddings, and a loss with its gradient.
func ExampleDot() {
	pos := pairs.Edges{Src: []int32{0}, Dst: []int32{1}}
	all, perEdge, err := pairs.Grouped(pos, pairs.Edges{Src: []int32{0, 0}, Dst: []int32{2, 3}})
	if err != nil {
		log.Fatal(err)
	}
	f := nn.NewFwd(nn.Config{Train: true})
	h := f.Leaf(4, 2, []float32{1, 0, 2, 0, -1, 1, 0, 3}, nil)
	scores := pairs.Dot{}.Score(f, h, all.Src, all.Dst)
	loss := pairs.BCE(scores, perEdge)
	fmt.Println(scores.Data(), loss.Correct(), "of", loss.Count, "right")
	loss.Backward()
	fmt.Printf("%.2f\n", h.Grad()[:2])
	// Output:
	// [2 -1 0] 3 of 3 right
	// [-0.51 1.77]
}
