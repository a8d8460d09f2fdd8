package budget_test

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb/budget"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Of each type, a step has its seeds and two further nodes at each of two hops.
func ExampleSampler() {
	var src, dst []int32
	for u := range int32(30) {
		for i := range int32(10) {
			if (u+i)%3 > 0 { // user u likes item i
				src, dst = append(src, u, 30+i), append(dst, 30+i, u)
			}
		}
	}
	types := make([]uint16, len(src))
	for e := range types {
		types[e] = uint16(e % 2)
	}
	g, err := graphops.FromEdgesWith(40, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err != nil {
		panic(err)
	}
	g, err = g.WithTypes(&graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: 30}, {Name: "item", Count: 10}},
		Relations: []graphops.Relation{{Src: "user", Name: "likes", Dst: "item"}, {Src: "item", Name: "liked", Dst: "user"}},
	}, g.EdgeTypes)
	if err != nil {
		panic(err)
	}
	s, err := sample.New(g, sample.Config{Picker: &budget.Sampler{Nodes: []int{2, 2}}, Seed: 1})
	if err != nil {
		panic(err)
	}
	b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{3, 5, 8}})
	if err != nil {
		panic(err)
	}
	counts := make([]int, 2)
	for _, v := range b.Blocks[0].SrcIDs() {
		counts[g.Schema.TypeOf(v)]++
	}
	fmt.Println(counts[0], "users,", counts[1], "items")
	// Output: 5 users, 4 items
}
