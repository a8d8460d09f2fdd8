package pairs

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"

	"pgregory.net/rapid"
)

func TestHeuristics(t *testing.T) {
	// 0 and 3 have the common neighbours 1 (degree 2) and 2 (degree 3).
	g := graph(t, 6, true, 0, 1, 0, 2, 1, 3, 2, 3, 2, 4)
	pairs := Edges{[]int32{0, 3, 0, 0, 5}, []int32{3, 0, 1, 0, 0}}
	two, three := 1/math.Log(2), 1/math.Log(3)
	for _, c := range []struct {
		name string
		of   func(*graphops.Graph, Edges, int) ([]float32, error)
		want []float64
	}{
		{"common neighbours", CommonNeighbours, []float64{2, 2, 0, 2, 0}},
		{"Adamic–Adar", AdamicAdar, []float64{two + three, two + three, 0, two + three, 0}},
		{"resource allocation", ResourceAllocation, []float64{0.5 + 1/3., 0.5 + 1/3., 0, 0.5 + 1/3., 0}},
	} {
		got, err := c.of(g, pairs, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range c.want {
			if got[i] != float32(x) {
				t.Errorf("%s of %d and %d is %v, want %v", c.name, pairs.Src[i], pairs.Dst[i], got[i], float32(x))
			}
		}
		if _, err := c.of(g, Edges{[]int32{0}, []int32{6}}, 0); err == nil || !strings.Contains(err.Error(), "edge 0 of the pairs is 0 → 6, but the graph has the nodes 0 to 5") {
			t.Errorf("%s of a node that is not there gives %v", c.name, err)
		}
	}
}

// Self-loops and repeated edges do not count.
func TestCommonNeighboursAgainstSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, false)
		node := rapid.Int32Range(0, int32(g.NumNodes()-1))
		u, v := node.Draw(t, "u"), node.Draw(t, "v")
		want := 0
		for z := range int32(g.NumNodes()) {
			if z != u && z != v && slices.Contains(g.InNeighbors(u), z) && slices.Contains(g.InNeighbors(v), z) {
				want++
			}
		}
		got, err := CommonNeighbours(g, Edges{[]int32{u}, []int32{v}}, 1)
		if err != nil || got[0] != float32(want) {
			t.Fatalf("common neighbours of %d and %d: %v, %v; want %d", u, v, got, err, want)
		}
	})
}
