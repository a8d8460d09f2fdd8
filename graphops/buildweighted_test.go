package graphops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func weighted(g *Graph) string {
	var s []string
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			s = append(s, fmt.Sprintf("%d→%d:%v", g.Indices[e], v, g.Weight(e)))
		}
	}
	return strings.Join(s, " ")
}

func TestFromWeightedEdges(t *testing.T) {
	src, dst, w := []int32{2, 0, 2, 1, 1}, []int32{1, 1, 1, 1, 2}, []float32{1, 2, 4, 8, 16}
	for _, c := range []struct {
		name string
		o    BuildOptions
		want string
	}{
		{"directed", BuildOptions{}, "0→1:2 1→1:8 2→1:5 1→2:16"},
		{"undirected", BuildOptions{Undirected: true}, "1→0:2 0→1:2 1→1:8 2→1:21 1→2:21"},
		{"duplicates", BuildOptions{KeepDuplicates: true}, "0→1:2 1→1:8 2→1:1 2→1:4 1→2:16"},
		{"self-loops", BuildOptions{SelfLoops: true}, "0→0:1 0→1:2 1→1:8 2→1:5 1→2:16 2→2:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := FromWeightedEdges(3, src, dst, w, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := weighted(g); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
	if g, err := FromWeightedEdges(0, nil, nil, nil, BuildOptions{}); err != nil || g.NumNodes() != 0 || len(g.EdgeWeights) != 0 {
		t.Errorf("empty: %v %v", g, err)
	}
}

func TestFromWeightedEdgesRefuses(t *testing.T) {
	for _, c := range []struct {
		nodes    int
		src, dst []int32
		w        []float32
		want     string
	}{
		{2, []int32{0}, []int32{1}, nil, "0 weights for 1 edges"},
		{2, []int32{0}, []int32{2}, []float32{1}, "edge 0 is 0 → 2"},
		{2, []int32{0}, []int32{1}, []float32{float32(math.NaN())}, "edge 0 has the weight NaN"},
		{-1, nil, nil, nil, "a graph of -1 nodes"},
	} {
		if _, err := FromWeightedEdges(c.nodes, c.src, c.dst, c.w, BuildOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want %q", err, c.want)
		}
	}
}

// The graph equals that of FromEdges with summed weights, and neither the order of the list nor the
// number of threads changes a bit.
func TestFromWeightedEdgesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		m := rapid.IntRange(0, 150).Draw(t, "m")
		o := BuildOptions{
			Undirected:     rapid.Bool().Draw(t, "undirected"),
			SelfLoops:      rapid.Bool().Draw(t, "selfLoops"),
			KeepDuplicates: rapid.Bool().Draw(t, "keep"),
			Threads:        1,
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		src, dst, w := make([]int32, m), make([]int32, m), make([]float32, m)
		sums := map[[2]int32]float64{}
		for i := range m {
			src[i], dst[i], w[i] = int32(rng.IntN(n)), int32(rng.IntN(n)), rng.Float32()
			sums[[2]int32{src[i], dst[i]}] += float64(w[i])
			if o.Undirected && src[i] != dst[i] {
				sums[[2]int32{dst[i], src[i]}] += float64(w[i])
			}
		}
		g, err := FromWeightedEdges(n, src, dst, w, o)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := FromEdges(n, src, dst, o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(g.Indptr, plain.Indptr) || !slices.Equal(g.Indices, plain.Indices) {
			t.Fatalf("the graph differs from that of FromEdges:\n%s", weighted(g))
		}
		got := map[[2]int32]float64{}
		for v := range int32(n) {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				got[[2]int32{g.Indices[e], v}] += float64(g.EdgeWeights[e])
			}
		}
		for e, sum := range got {
			want, listed := sums[e]
			if !listed {
				want = 1 // an added self-loop
			}
			if math.Abs(sum-want) > 1e-4 { // the weight is a sum of at most 150 float32 values below 1
				t.Fatalf("the edge %v has the weight %v, want %v", e, sum, want)
			}
		}
		rng.Shuffle(m, func(i, j int) {
			src[i], src[j], dst[i], dst[j], w[i], w[j] = src[j], src[i], dst[j], dst[i], w[j], w[i]
		})
		o.Threads = 3
		again, err := FromWeightedEdges(n, src, dst, w, o)
		if err != nil {
			t.Fatal(err)
		}
		if weighted(again) != weighted(g) {
			t.Fatalf("another order of the edges or another number of threads gives\n%s\ninstead of\n%s", weighted(again), weighted(g))
		}
	})
}
