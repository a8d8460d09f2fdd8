package boards

import (
	"fmt"
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// sampleBatch returns a batch whose seed has fanout neighbours, each with fanout neighbours of its
// own.
func sampleBatch(fanout int) Batch {
	b := Batch{
		Title: "a batch of 1,024 seeds of arxiv", Note: "sage on cpu, 2 threads",
		Hops: []Hop{{6970, 7314, 1.1}, {57482, 33570, 2.2}},
		Spans: []Span{
			{"sample", 0, 0.0016, 1 << 20},
			{"fetch", 0.0016, 1e-5, 4096},
			{"forward, layer 1", 0.0017, 0.03, 60 << 20},
			{"forward, layer 2", 0.0317, 0.004, 6 << 20},
			{"backward", 0.0357, 0.05, 130 << 20},
			{"all-reduce", 0.0857, 1e-6, 1 << 18},
			{"optimizer", 0.0858, 3e-4, 7 << 18},
		},
		Nodes: []GraphNode{{"17", 0}},
	}
	for i := range fanout {
		b.Nodes = append(b.Nodes, GraphNode{fmt.Sprint(100 + i), 1})
		b.Edges = append(b.Edges, [2]int{i + 1, 0})
	}
	for i := range fanout {
		for j := range fanout {
			b.Edges = append(b.Edges, [2]int{len(b.Nodes), i + 1}, [2]int{j + 1, i + 1})
			b.Nodes = append(b.Nodes, GraphNode{fmt.Sprint(1000*i + j), 2})
		}
	}
	return b
}

// A batch is drawn for any numbers. If GNB_LOOK names a directory, the pictures are written there
// for review.
func TestBatchPNG(t *testing.T) {
	odd := sampleBatch(2)
	odd.Spans[0].Seconds, odd.Spans[1].Start, odd.Hops[0].Duplication = math.NaN(), math.Inf(1), math.NaN()
	lonely := Batch{Title: "a node without neighbours", Nodes: []GraphNode{{"3", 0}}, Hops: []Hop{{0, 1, 0}}, Spans: []Span{{Name: "sample"}}}
	stray := Batch{Nodes: []GraphNode{{"1", 0}, {"2", 2}}, LeftOut: 5} // the node's parent was left out
	for name, b := range map[string]Batch{"none": {}, "few": sampleBatch(3), "many": sampleBatch(15), "odd": odd, "lonely": lonely, "stray": stray} {
		screentest.CheckPicture(t, "batch-"+name, func() (chart.Picture, error) { return BatchPNG(b) })
	}
}

// Nodes lie on the circle of their hop, each at a different place.
func TestPlace(t *testing.T) {
	b := sampleBatch(7)
	at := place(b.Nodes, b.Edges)
	seen := map[string]int{}
	for i, p := range at {
		if r := math.Hypot(float64(p.X), float64(p.Y)); math.Abs(r-float64(b.Nodes[i].Hop)/2) > 1e-9 {
			t.Errorf("node %d of hop %d is at radius %.3f", i, b.Nodes[i].Hop, r)
		}
		key := fmt.Sprintf("%.6f %.6f", p.X, p.Y)
		if j, twice := seen[key]; twice {
			t.Errorf("nodes %d and %d are both at %s", j, i, key)
		}
		seen[key] = i
	}
	// The nodes go all the way around the circle.
	for quarter := range 4 {
		some := false
		for _, p := range at[1:] {
			a := math.Atan2(float64(p.Y), float64(p.X)) + 2*math.Pi
			some = some || int(a/(math.Pi/2))%4 == quarter
		}
		if !some {
			t.Errorf("quarter %d of the circle is empty", quarter)
		}
	}
}
