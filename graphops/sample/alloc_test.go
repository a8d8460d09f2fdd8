//go:build !race

package sample

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Once its buffers have grown, a sampler whose batches are released allocates only the batch's
// header. The test is left out under the race detector, which makes pools drop objects at random.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	testneed.Raced(t, "it samples for long")
	g := benchGraph(20000, 12)
	weights := make([]float32, len(g.Indices))
	for i := range weights {
		weights[i] = float32(i%7 + 1)
	}
	for name, c := range map[string]Config{
		"fanouts":  {Picker: Fanouts{8, -1, 5}, Transpose: true, TransposeInput: true},
		"many":     {Picker: Fanouts{8, 60}},
		"weighted": {Picker: Weighted{Fanouts{8, 5}}, Weights: weights},
	} {
		for c.Threads = 1; c.Threads <= 2; c.Threads++ {
			t.Run(fmt.Sprintf("%s/%d", name, c.Threads), func(t *testing.T) {
				s, err := New(g, c)
				if err != nil {
					t.Fatal(err)
				}
				seeds := nodesTo(500)
				next := func() {
					b, err := s.Sample(0, 0, Seeds{IDs: seeds})
					if err != nil {
						t.Fatal(err)
					}
					b.Release()
				}
				// A worker's buffers grow when it first has work, and a garbage collection empties
				// pools, so the test uses the least of several counts.
				best := testing.AllocsPerRun(20, next)
				for range 20 {
					best = min(best, testing.AllocsPerRun(5, next))
				}
				if best > 1 {
					t.Errorf("%v allocations a batch", best)
				}
			})
		}
	}
}
