package sample

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows of (tree, node) pairs are those of a map that takes the edges one after the other, over several hops and batches of
// other numbers of trees, on any number of threads: repeated seeds, nodes that several trees have, empty lists.
func TestTreeRowsAreTheReference(t *testing.T) {
	type pair struct{ tree, node int32 }
	for _, threads := range []int{1, 3} {
		var rows treeRows
		for batch, trees := range []int{1, 200, 0, 63, 130, 257} {
			r := rand.New(rand.NewPCG(uint64(batch), 9))
			seeds := make([]int32, trees)
			known := map[pair]int32{}
			var want []pair
			for i := range seeds {
				seeds[i] = r.Int32N(40)
				known[pair{int32(i), seeds[i]}] = int32(i)
				want = append(want, pair{int32(i), seeds[i]})
			}
			rows.begin(seeds, threads, func() {})
			ids, of := slices.Clone(seeds), []int32{}
			for i := range seeds {
				of = append(of, int32(i))
			}
			for range 3 {
				indptr, indices := []int64{0}, []int32{}
				for range ids {
					for range r.IntN(8) {
						indices = append(indices, r.Int32N(40))
					}
					indptr = append(indptr, int64(len(indices)))
				}
				numbers := slices.Clone(indices)
				for d := range ids {
					for e := indptr[d]; e < indptr[d+1]; e++ {
						p := pair{of[d], indices[e]}
						if _, ok := known[p]; !ok {
							known[p] = int32(len(want))
							want = append(want, p)
						}
						numbers[e] = known[p]
					}
				}
				ids, of = rows.number(ids, of, indptr, indices)
				if !slices.Equal(indices, numbers) {
					t.Fatalf("%d threads, %d trees: rows of edges are wrong", threads, trees)
				}
				for i, p := range want {
					if ids[i] != p.node || of[i] != p.tree {
						t.Fatalf("%d threads, %d trees: row %d is node %d of tree %d, want %v", threads, trees, i, ids[i], of[i], p)
					}
				}
			}
		}
	}
}
