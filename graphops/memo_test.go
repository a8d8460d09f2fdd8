package graphops_test

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

func TestMemoKeepsByKey(t *testing.T) {
	b := graphops.HostBlock{}.Block()
	calls := 0
	get := func(key any) int {
		v := b.Memo(key, func() any { calls++; return calls })
		return v.(int)
	}
	type key struct{ on bool }
	if get(key{true}) != 1 || get(key{false}) != 2 || get(key{true}) != 1 || get("x") != 3 {
		t.Error("the cache returns a value for another key")
	}
}

func TestKeepSlicesReturnsTheSameBlocks(t *testing.T) {
	g := &graphops.Graph{Indptr: []int64{0, 1, 2, 3}, Indices: []int32{1, 2, 0}}
	s := graphops.KeepSlices(g)
	if first := s.Slice(0, 2); s.Slice(0, 2) != first || s.Slice(0, 3) == first {
		t.Error("the cache does not return the slice of a range")
	}
	if b := s.Slice(1, 3); b.NumDst != 2 || b.DstStart != 1 || s.NumNodes() != 3 {
		t.Errorf("the slice [1,3) is %v", b)
	}
	large := &graphops.Graph{Indptr: []int64{0, 1<<21 + 1}, Indices: make([]int32, 1<<21+1)}
	s = graphops.KeepSlices(large)
	if first := s.Slice(0, 1); s.Slice(0, 1) == first {
		t.Error("the cache keeps blocks of a large graph")
	}
}
