package sample_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/sample"
)

// The mini-batches of an epoch.
func Example() {
	// A path 0 → 1 → 2 → 3 → 4, and 0 → 4.
	g := build(5, edge{0, 1}, edge{1, 2}, edge{2, 3}, edge{3, 4}, edge{0, 4})
	s, err := sample.New(g, sample.Config{Picker: sample.Fanouts{2, 2}, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	order := sample.EpochOrder(1, 0, []int32{2, 3, 4})
	nodes := map[int32]bool{}
	for step := range (len(order) + 1) / 2 {
		b, err := s.Sample(0, step, sample.Seeds{IDs: order[2*step : min(2*step+2, len(order))]})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(b.Seeds), "seeds,", len(b.Blocks), "blocks")
		for _, v := range b.InputIDs() {
			nodes[v] = true
		}
	}
	fmt.Println(len(nodes), "nodes reached")
	// Output:
	// 2 seeds, 2 blocks
	// 1 seeds, 2 blocks
	// 5 nodes reached
}

// heavy takes the K in-edges of largest weight.
type heavy struct {
	Weight []float32 // by CSC position
	K      int
}

func (p heavy) Hops() int { return 1 }

func (p heavy) Pick(h *sample.Hop, _ int32, nbrs []int32, out []int32) []int32 {
	w := func(i int) float32 { return p.Weight[h.Position(i)] }
	taken := make([]bool, len(nbrs))
	for range min(p.K, len(nbrs)) {
		best := -1
		for i := range nbrs {
			if !taken[i] && (best < 0 || w(i) > w(best)) {
				best = i
			}
		}
		taken[best] = true
		out = append(out, int32(best))
	}
	return out
}

// A user's own sampler: for each node it gets the in-neighbours and returns the positions of those
// that it picks.
func ExamplePicker() {
	g := build(4, edge{0, 3}, edge{1, 3}, edge{2, 3})
	s, err := sample.New(g, sample.Config{Picker: heavy{Weight: []float32{0.3, 0.9, 0.5}, K: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{3}})
	fmt.Println(b.InputIDs(), err)
	// Output: [3 1 2] <nil>
}
