package sample_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// An Induced batch has the edges between its seeds, in the graph's order, with their positions and weights, whatever the order
// of the seeds, the threads and the memory that it reuses.
func TestInducedIsTheSubgraphOfItsSeeds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 300
	var src, dst []int32
	var weights []float32
	for range 3000 {
		src, dst = append(src, rng.Int32N(n)), append(dst, rng.Int32N(n))
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range g.Indices {
		weights = append(weights, float32(1+rng.IntN(9)))
	}
	g = g.WithEdgeWeights(weights)
	var batches []*sample.Induced
	for _, threads := range []int{1, 3} {
		s, err := sample.NewInduced(g, sample.Config{Hops: 2, Threads: threads, Transpose: true})
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, s)
	}
	for round := range 20 {
		var seeds []int32
		for _, v := range rng.Perm(n)[:rng.IntN(n)] {
			seeds = append(seeds, int32(v))
		}
		if round%2 == 0 { // runs of successive nodes
			slices.Sort(seeds)
			seeds = append(seeds[len(seeds)/2:len(seeds):len(seeds)], seeds[:len(seeds)/2]...)
		}
		for _, s := range batches {
			b, err := s.Sample(0, round, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			k := b.Blocks[0]
			if len(b.Blocks) != 2 || b.Blocks[1] != k || k.NumDst != len(seeds) || k.NumSrc != len(seeds) || !slices.Equal(b.InputIDs(), seeds) {
				t.Fatalf("blocks of %d rows for %d seeds", k.NumDst, len(seeds))
			}
			for d, v := range seeds {
				var want []int64
				for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
					if slices.Contains(seeds, g.Indices[e]) {
						want = append(want, e)
					}
				}
				lo, hi := k.Indptr()[d], k.Indptr()[d+1]
				if got := k.EdgePos()[lo:hi]; !slices.Equal(got, want) {
					t.Fatalf("node %d has the edges %v, want %v", v, got, want)
				}
				for e := lo; e < hi; e++ {
					if at := k.EdgePos()[e]; seeds[k.Indices()[e]] != g.Indices[at] || k.Weight(e) != g.EdgeWeights[at] {
						t.Fatalf("edge %d of node %d comes from row %d with weight %v", at, v, k.Indices()[e], k.Weight(e))
					}
				}
			}
			if !k.HasTransposed() || k.Transposed().Indptr[len(seeds)] != int64(k.NumEdges()) {
				t.Error("the block is not transposed")
			}
			b.Release()
		}
	}
	if _, err := batches[0].Sample(0, 0, sample.Seeds{IDs: []int32{4, 5, 6, 5}}); err == nil || !strings.Contains(err.Error(), "node 5 is twice") {
		t.Errorf("a repeated seed: %v", err)
	}
	b, err := batches[0].Sample(0, 0, sample.Seeds{})
	if err != nil || b.Blocks[0].NumDst != 0 || b.Edges() != 0 {
		t.Errorf("no seeds: %v, %v", b, err)
	}
}
