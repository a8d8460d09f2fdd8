package graphops_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// The order of a node's in-edges is a stable sort by time, or by type and time, on any number of threads, and there is none
// where edges are in order already.
func TestTimeOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := &graphops.Graph{Indptr: []int64{0}}
	var times []int64
	var types []uint16
	for range 3000 {
		n := r.IntN(9)
		if r.IntN(100) == 0 {
			n = 700
		}
		for i := range n {
			g.Indices, times, types = append(g.Indices, int32(i)), append(times, int64(r.IntN(7))-3), append(types, uint16(r.IntN(3)))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	g, err := g.WithEdgeData(nil, times).WithTypes(nil, types)
	if err != nil {
		t.Fatal(err)
	}
	for _, byType := range []bool{false, true} {
		got := g.TimeOrder(byType)
		for v := range g.NumNodes() {
			lo, hi := g.Indptr[v], g.Indptr[v+1]
			want := make([]int32, hi-lo)
			for i := range want {
				want[i] = int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int {
				c := 0
				if byType {
					c = cmp.Compare(types[lo+int64(a)], types[lo+int64(b)])
				}
				return cmp.Or(c, cmp.Compare(times[lo+int64(a)], times[lo+int64(b)]))
			})
			if !slices.Equal(got[lo:hi], want) {
				t.Fatalf("by type %v, node %d: %v, want %v", byType, v, got[lo:hi], want)
			}
		}
		of := types
		if !byType {
			of = nil
		}
		if again := g.TimeOrder(byType); &again[0] != &got[0] || !slices.Equal(graphops.OrderByTime(g.Indptr, times, of, 3), graphops.OrderByTime(g.Indptr, times, of, 1)) {
			t.Error("the order is computed twice, or depends on threads")
		}
	}
	for v := range g.NumNodes() {
		slices.Sort(times[g.Indptr[v]:g.Indptr[v+1]])
	}
	if g.WithEdgeData(nil, times).TimeOrder(false) != nil {
		t.Error("edges that are in order have an order")
	}
}
