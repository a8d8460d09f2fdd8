package graphops_test

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// Two ranks divide a batch of one hop: edges 2→0, 3→0, 0→1, 2→1 between the nodes 10, 11, 12, 13, of which rank 0 owns
// the even ones. Package sample's tests compare divided batches with those that ranks expand together.
func TestDivision(t *testing.T) {
	g := &graphops.Graph{Indptr: make([]int64, 21)}
	ids := []int32{10, 11, 12, 13}
	hops := []graphops.HostBlock{{
		NumDst: 2, Graph: g, Indptr: []int64{0, 2, 4}, Indices: []int32{2, 3, 0, 2}, EdgePos: []int64{5, 6, 7, 8},
	}}
	for rank, want := range []struct {
		own      []int32
		sources  []int32
		indices  []int32
		pos      []int64
		from, to []int32
		// The edges from this rank's rows: into its own destination, and into the other rank's.
		sums []int32
		ends []int64
	}{
		{[]int32{10, 12}, []int32{10, 12, 13}, []int32{1, 2}, []int64{5, 6}, []int32{1}, []int32{0, 1}, []int32{1, 0, 1}, []int64{0, 1, 3}},
		{[]int32{11, 13}, []int32{11, 13, 10, 12}, []int32{2, 3}, []int64{7, 8}, []int32{0, 1}, []int32{1}, []int32{1}, []int64{0, 0, 1}},
	} {
		d := graphops.Division{Rank: rank, World: 2, Owners: func(nodes []int32, owner []uint8) {
			for i, v := range nodes {
				owner[i] = uint8(v % 2)
			}
		}}
		if !d.Valid(ids, hops) {
			t.Fatal("the batch is refused")
		}
		var e graphops.HostBlock
		var k graphops.RankHop
		for range 2 { // the second time in the same memory
			own, seeds := d.Nodes(nil, ids, hops)
			d.Hop(&e, &k, &hops[0], ids, own, true)
			if seeds != 1 || !slices.Equal(own, want.own) || !slices.Equal(e.SrcIDs, want.sources) || !slices.Equal(e.Indices, want.indices) || !slices.Equal(e.EdgePos, want.pos) {
				t.Errorf("rank %d: %d seeds, nodes %v, sources %v, edges from %v at %v, want %+v", rank, seeds, own, e.SrcIDs, e.Indices, e.EdgePos, want)
			}
			if h := &k.Halo; h.Own != 2 || h.Most != 4 || !slices.Equal(h.From[1-rank], want.from) || !slices.Equal(h.To[1-rank], want.to) {
				t.Errorf("rank %d: halo %+v, want %+v", rank, h, want)
			}
			if b := k.Halo.Sums.Block; !slices.Equal(b.Indices(), want.sums) || !slices.Equal(b.Indptr(), want.ends) {
				t.Errorf("rank %d: sums over %v to %v, want %+v", rank, b.Indices(), b.Indptr(), want)
			}
		}
	}
}

func TestDivisionRefuses(t *testing.T) {
	g := &graphops.Graph{Indptr: make([]int64, 21)}
	for name, edit := range map[string]func(ids *[]int32, h []graphops.HostBlock){
		"nothing":                   func(_ *[]int32, _ []graphops.HostBlock) {},
		"a node that is none":       func(ids *[]int32, _ []graphops.HostBlock) { (*ids)[3] = 20 },
		"a source beyond the nodes": func(_ *[]int32, h []graphops.HostBlock) { h[1].Indices[0] = 4 },
		"a source of a later hop":   func(_ *[]int32, h []graphops.HostBlock) { h[0].Indices[0] = 3 },
		"a negative source":         func(_ *[]int32, h []graphops.HostBlock) { h[1].Indices[0] = -1 },
		"too many destinations":     func(_ *[]int32, h []graphops.HostBlock) { h[1].NumDst = 5 },
		"fewer destinations":        func(_ *[]int32, h []graphops.HostBlock) { h[1].NumDst, h[1].Indptr = 0, []int64{0} },
		"ends that go back":         func(_ *[]int32, h []graphops.HostBlock) { h[1].Indptr[1] = 3 },
		"an end beyond the edges":   func(_ *[]int32, h []graphops.HostBlock) { h[1].Indptr[3] = 4 },
		"positions that are absent": func(_ *[]int32, h []graphops.HostBlock) { h[1].EdgePos = nil },
	} {
		ids := []int32{10, 11, 12, 13}
		hops := []graphops.HostBlock{
			{NumDst: 1, Graph: g, Indptr: []int64{0, 2}, Indices: []int32{1, 2}, EdgePos: []int64{0, 1}},
			{NumDst: 3, Level: 1, Graph: g, Indptr: []int64{0, 0, 1, 2}, Indices: []int32{3, 0}, EdgePos: []int64{2, 3}},
		}
		edit(&ids, hops)
		if d := (graphops.Division{World: 2}); d.Valid(ids, hops) != (name == "nothing") {
			t.Errorf("%s: the batch is valid: %v", name, name != "nothing")
		}
	}
}
