package kge_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
)

// A query with the scores of all entities, and the filtered rank of its answer.
func Example() {
	// Entities: 0 Ada, 1 Bob, 2 Eve. Relation 0: knows.
	known := kge.Triples{Head: []int32{0, 0}, Rel: []int32{0, 0}, Tail: []int32{1, 2}}
	filter := kge.NewQueries(known)

	d, err := kge.NewDecoder("distmult", 2, kge.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	f := nn.NewFwd(nn.Config{})
	entities := f.Input(3, 2, []float32{1, 0, 2, 1, 3, -1}, nil)
	relations := f.Input(1, 2, []float32{1, 1}, nil)
	scores := d.Tails(f, f.Gather(entities, []int32{0}), f.Gather(relations, []int32{0}), entities)
	fmt.Println("scores of (Ada, knows, ?):", scores.Data())
	fmt.Println("rank of Bob:", kge.Rank(scores.Data(), 1, filter.Answers(0, 0)))
	// Output:
	// scores of (Ada, knows, ?): [1 2 3]
	// rank of Bob: 1
}
