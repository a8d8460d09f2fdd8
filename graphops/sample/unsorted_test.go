package sample

import (
	"errors"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// A sampler that takes a node's in-edges to be in the order of time where they are not is caught.
func TestUnsortedEdgesAreCaught(t *testing.T) {
	g := &graphops.Graph{Indptr: []int64{0, 4, 4, 4, 4, 4}, Indices: []int32{1, 2, 3, 4}}
	g = g.WithEdgeData(nil, []int64{2, 9, 4, 3})
	for _, asOf := range []AsOf{{}, {Strategy: TakeRecent}, {Window: 3}} {
		c := Config{Picker: Fanouts{2}, Disjoint: true, AsOf: asOf}
		s, err := New(g, c)
		if err != nil {
			t.Fatal(err)
		}
		s.inTime.known = g.EdgeTimes // without their order
		proof, err := ProverOf(g, c)
		if err != nil {
			t.Fatal(err)
		}
		var leak *Leak
		for step := 0; step < 10 && err == nil; step++ {
			seeds := Seeds{IDs: []int32{0}, Times: []int64{4}}
			b, bad := s.Sample(0, step, seeds)
			if bad != nil {
				t.Fatal(bad)
			}
			err = proof.Check(b, seeds)
		}
		if !errors.As(err, &leak) || leak.Kind != LeakOrder && leak.Kind != LeakLater && leak.Kind != LeakWindow {
			t.Errorf("%+v: %v", asOf, err)
		}
	}
}
