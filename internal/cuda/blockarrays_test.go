package cuda

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

func TestReset(t *testing.T) {
	b := graphops.HostBlock{}.Block()
	if ArraysOf(b) != nil {
		t.Error("a host block has device arrays")
	}
	var released []BlockArrays
	a := &BlockArrays{Indptr: 4096, TIndptr: 8192, Release: func(a *BlockArrays) { released = append(released, *a) }}
	b.Dev = a
	if ArraysOf(b) != a || !a.HasTransposed() {
		t.Error("Of does not return the block's arrays")
	}
	b.Reset()
	b.Reset()
	if len(released) != 1 || released[0].Indptr != 4096 {
		t.Errorf("released %d times: %+v", len(released), released)
	}
	if ArraysOf(b) != nil || a.HasTransposed() {
		t.Error("the arrays remain after Reset")
	}
}
