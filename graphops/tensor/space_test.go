package tensor

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// A space of a block's rows says where they are, and spaces of blocks without host
// arrays are the same only where these are.
func TestSpaceOfBlock(t *testing.T) {
	b, c := &graphops.Block{NumDst: 2, NumSrc: 5, DstStart: 1, DevEdges: 3}, &graphops.Block{NumDst: 2, NumSrc: 5, DstStart: 1}
	src, dst := SrcSpace(b), DstSpace(b)
	if of, from := dst.Sources(); of != b || from != 1 {
		t.Errorf("destinations are of %p from %d", of, from)
	}
	if !src.sub(1, 3).same(dst) || src.sub(1, 3).sub(1, 2).same(dst) {
		t.Error("rows 1 and 2 of the sources are not the destinations, or others are")
	}
	if DstSpace(c).same(dst) {
		t.Error("rows of two blocks on a device are the same")
	}
	c.Indptr, c.SrcIDs = []int64{0, 0, 0}, []int32{4, 5, 6, 7, 8}
	if !DstSpace(c).same(&Space{IDs: []int32{5, 6}}) || DstSpace(c).same(dst) {
		t.Error("rows of a block in host memory are not compared by their ids")
	}
	if of, _ := EdgeSpace(c).Sources(); of != nil {
		t.Error("edges have sources")
	}
}
