package tensor

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// remote is a device that holds a block's ids and counts how often they are fetched.
type remote struct {
	ids   []int32
	table any
	asked int
}

func (r *remote) NumEdges() int      { return 3 }
func (r *remote) Indptr() []int64    { panic("must not be read") }
func (r *remote) Indices() []int32   { panic("must not be read") }
func (r *remote) EdgePos() []int64   { panic("must not be read") }
func (r *remote) SrcIDs() []int32    { r.asked++; return r.ids }
func (r *remote) Weighted() bool     { return false }
func (r *remote) Weights() []float32 { return nil }
func (r *remote) IDsOf() any         { return r.table }

// The space of a block's rows identifies them. Spaces of blocks on a device are compared by the
// table that holds the ids and, if that does not decide, by the ids.
func TestSpaceOfBlock(t *testing.T) {
	on := func(table any, dst int, ids ...int32) (*graphops.Block, *remote) {
		b, r := &graphops.Block{}, &remote{ids: ids, table: table}
		b.SetRemote(r, dst, len(ids), 0, nil)
		return b, r
	}
	b, far := on("a batch", 2, 4, 5, 6, 7, 8)
	src, dst := ops.SrcSpace(b), ops.DstSpace(b)
	if of, from := src.Sub(1, 3).Sources(); of != b || from != 1 {
		t.Errorf("rows are of %p from %d", of, from)
	}
	if !src.Sub(0, 2).Same(dst) || far.asked > 0 {
		t.Errorf("rows 0 and 1 of the sources are not the destinations, or ids were fetched %d times", far.asked)
	}
	if src.Sub(1, 3).Same(dst) {
		t.Error("rows 1 and 2 of the sources count as the destinations")
	}
	next, near := on("a batch", 1, 4, 5)
	far.asked = 0
	if !ops.SrcSpace(next).Same(dst) || far.asked+near.asked > 0 {
		t.Errorf("the destinations of a block are not the next one's sources, or ids were fetched %d and %d times", far.asked, near.asked)
	}
	other, _ := on("another", 2, 4, 5)
	if !ops.SrcSpace(other).Same(dst) || ops.SrcSpace(other).Same(src) || far.asked == 0 {
		t.Error("rows of two batches on a device are not compared by their ids")
	}
	host := graphops.HostBlock{NumDst: 2, NumSrc: 5, DstStart: 1, Indptr: []int64{0, 0, 0}, SrcIDs: []int32{3, 4, 5, 7, 8}}.Block()
	if !ops.DstSpace(host).Same(&ops.Space{IDs: []int32{4, 5}}) || !ops.DstSpace(host).Same(dst) || ops.SrcSpace(host).Same(src) {
		t.Error("rows of a block in host memory are not compared by their ids")
	}
	if of, from := ops.DstSpace(host).Sources(); of != host || from != 1 {
		t.Errorf("destinations are of %p from %d", of, from)
	}
	if dst.ID(1) != 5 || src.Sub(2, 4).ID(1) != 7 || ops.DstSpace(host).ID(0) != 4 {
		t.Error("rows have other ids")
	}
	if of, _ := ops.EdgeSpace(host).Sources(); of != nil {
		t.Error("edges have sources")
	}
}
