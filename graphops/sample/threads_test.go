package sample

import (
	"runtime"
	"slices"
	"testing"
)

// The Go runtime changes GOMAXPROCS when a container's share of the processors changes; existing
// samplers continue to work and make the same batches.
func TestSamplerOutlivesGOMAXPROCS(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g := benchGraph(20*grain, 6)
	weights := slices.Repeat([]float32{1}, len(g.Indices))
	for name, c := range map[string]Config{"fanouts": {Picker: Fanouts{3, 3}}, "another picker": {Picker: Weighted{Fanouts{3, 3}}, Weights: weights}} {
		s, err := New(g, c)
		if err != nil {
			t.Fatal(err)
		}
		var sums []string
		for _, procs := range []int{1, 7, 2} {
			runtime.GOMAXPROCS(procs)
			b, err := s.Sample(0, 0, Seeds{IDs: nodesTo(10 * grain)})
			if err != nil {
				t.Fatal(err)
			}
			d := NewDigest()
			d.AddBatch(b)
			if sums = append(sums, d.Sum()); d.Sum() != sums[0] {
				t.Errorf("%s: the batch differs on %d processors", name, procs)
			}
		}
	}
}
