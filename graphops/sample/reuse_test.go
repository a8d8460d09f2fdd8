package sample

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// Transposing while sampling gives the same as transposing afterwards, for consecutive batches in
// the same memory.
func TestTranspose(t *testing.T) {
	g := benchGraph(3000, 12)
	for _, c := range []Config{
		{Picker: Fanouts{6, 5, 40}, Transpose: true},
		{Picker: Fanouts{6, 5, 40}, Transpose: true, TransposeInput: true},
		{Picker: Fanouts{6, 5, 40}, TransposeInput: true},
		{Picker: Fanouts{4}, Transpose: true},
	} {
		for c.Threads = 1; c.Threads <= 3; c.Threads++ {
			s, err := New(g, c)
			if err != nil {
				t.Fatal(err)
			}
			var before *graphops.Transposed
			for step := range 3 {
				batch, err := s.Sample(0, step, Seeds{IDs: EpochOrder(1, step, nodesTo(3000))[:100*(step+1)]})
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range batch.Blocks {
					made := c.Transpose && i > 0 || c.TransposeInput && i == 0
					in := &batch.mem.hops[k.Level].transposed
					if got := k.Transposed() == in; got != made {
						t.Errorf("block %d transposed while sampling: %v, want %v", i, got, made)
					}
					plain := graphops.HostBlock{NumDst: k.NumDst, NumSrc: k.NumSrc, Indptr: k.Indptr(), Indices: k.Indices()}.Block()
					got, want := k.Transposed(), plain.Transposed()
					if !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Dst, want.Dst) || !slices.Equal(got.Edge, want.Edge) {
						t.Errorf("step %d, block %d has another transpose if it is transposed while sampling", step, i)
					}
				}
				if in := &batch.mem.hops[0].transposed; before != nil && in != before {
					t.Error("the memory of a released batch was not reused")
				} else {
					before = in
				}
				batch.Release()
			}
		}
	}
}

// nodesTo returns the nodes 0 to n-1.
func nodesTo(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}
