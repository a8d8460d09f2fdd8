package devblock

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

func TestReset(t *testing.T) {
	b := graphops.HostBlock{}.Block()
	if Of(b) != nil {
		t.Error("a host block has device arrays")
	}
	var released []Arrays
	a := &Arrays{Indptr: 4096, TIndptr: 8192, Release: func(a *Arrays) { released = append(released, *a) }}
	b.Dev = a
	if Of(b) != a || !a.HasTransposed() {
		t.Error("Of does not return the block's arrays")
	}
	b.Reset()
	b.Reset()
	if len(released) != 1 || released[0].Indptr != 4096 {
		t.Errorf("released %d times: %+v", len(released), released)
	}
	if Of(b) != nil || a.HasTransposed() {
		t.Error("the arrays remain after Reset")
	}
}
