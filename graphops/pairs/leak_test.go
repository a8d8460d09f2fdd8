package pairs

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// A planted leak is found and named, at every hop, in sampled blocks and in blocks of the whole
// graph; a batch that excludes its edges has none.
func TestLeak(t *testing.T) {
	g := graph(t, 60, true, path(60)...)
	e := Edges{[]int32{10, 11}, []int32{11, 12}}
	sets := map[string]*sample.EdgeSet{"predicted by this batch": sample.NewEdgeSet(e.Src, e.Dst, true)}
	batch := func(p sample.Picker) []*graphops.Block {
		s, err := sample.New(g, sample.Config{Picker: p})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{9, 10, 11, 12, 13}})
		if err != nil {
			t.Fatal(err)
		}
		return b.Blocks
	}
	all := sample.Fanouts{-1, -1}
	leaky := batch(all)
	for hop := range leaky {
		if err := Leak(leaky[hop:hop+1], sets); err == nil || !strings.Contains(err.Error(), "which is predicted by this batch") {
			t.Errorf("the leak in block %d gives %v", hop, err)
		}
	}
	if err := Leak([]*graphops.Block{g.Block()}, sets); err == nil || !strings.Contains(err.Error(), "contain 11 → 10") {
		t.Errorf("the leak in the whole graph gives %v", err)
	}
	clean := batch(&sample.Excluding{Picker: all, Of: func(int, int) *sample.EdgeSet { return sets["predicted by this batch"] }})
	if err := Leak(clean, sets); err != nil {
		t.Errorf("a batch without its edges: %v", err)
	}
	if clean[0].NumEdges() == 0 {
		t.Error("the batch without its edges has no messages at all")
	}
	// One direction alone is a leak too.
	oneWay := sample.NewEdgeSet(e.Src, e.Dst, false)
	half := batch(&sample.Excluding{Picker: all, Of: func(int, int) *sample.EdgeSet { return oneWay }})
	if err := Leak(half, sets); err == nil {
		t.Error("the reverse of a predicted edge is among the messages, and Leak finds nothing")
	}
}
