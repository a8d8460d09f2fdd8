package chart

import (
	"math"
	"testing"

	"gonum.org/v1/plot/vg"
)

func distance2(a, b vg.Point) float64 { return math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)) }

// Two nodes at hop 0 are beside the middle, on the side of their children, and others on the circle of their hop, whatever the order of
// nodes is.
func TestCirclesAroundTwo(t *testing.T) {
	hops := []int{1, 0, 2, 0, 1, 1}
	at := Circles(hops, [][2]int{{0, 1}, {2, 4}, {4, 3}, {5, 3}, {1, 3}})
	for i, p := range at {
		if r, want := math.Hypot(float64(p.X), float64(p.Y)), (float64(hops[i])+0.5)/2.5; math.Abs(r-want) > 1e-9 {
			t.Errorf("node %d at hop %d is %v from the middle, want %v", i, hops[i], r, want)
		}
	}
	if distance2(at[0], at[1]) > distance2(at[0], at[3]) || distance2(at[4], at[3]) > distance2(at[4], at[1]) {
		t.Errorf("children are nearer to the other node: %v", at)
	}
	if len(Circles(nil, nil)) != 0 || Circles([]int{1, 2}, nil)[0] != (vg.Point{}) {
		t.Error("nodes without one in the middle")
	}
}

// Neighbours are nearer than nodes far away, a cycle is round, and parts that no path joins stay apart.
func TestSpringsKeepDistances(t *testing.T) {
	var cycle [][2]int
	for i := range 8 {
		cycle = append(cycle, [2]int{i, (i + 1) % 8})
	}
	at := Springs(8, cycle)
	for i := range 8 {
		if near, far := distance2(at[i], at[(i+1)%8]), distance2(at[i], at[(i+4)%8]); near > 0.6*far {
			t.Errorf("node %d: its neighbour is %v away, and the opposite one %v", i, near, far)
		}
	}
	apart := Springs(4, [][2]int{{0, 1}, {2, 3}})
	if distance2(apart[0], apart[1]) > distance2(apart[0], apart[2]) {
		t.Errorf("two parts are mixed: %v", apart)
	}
	for _, n := range []int{0, 1, 2} {
		for _, p := range Springs(n, nil) {
			if !Finite(float64(p.X)) || !Finite(float64(p.Y)) {
				t.Errorf("%d nodes: %v", n, p)
			}
		}
	}
}
