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
	d := graphops.Division{World: 2, Owners: func(nodes []int32, owner []uint8) {
		for i, v := range nodes {
			owner[i] = uint8(v % 2)
		}
	}}
	parts := make([]graphops.RankPart, 2)
	for range 2 { // the second time in the same memory
		d.Nodes(parts, ids, hops)
		d.Hop(parts, &hops[0], ids)
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
			read := graphops.RankPart{Hops: []graphops.HostBlock{{Graph: g}}, Coop: make([]graphops.RankHop, 1)}
			if !all(parts[rank].Append(nil, rank, true), &read, rank) {
				t.Fatalf("rank %d: the message of its part is refused", rank)
			}
			for name, p := range map[string]*graphops.RankPart{"divided": &parts[rank], "read": &read} {
				e, k := &p.Hops[0], &p.Coop[0]
				if p.Seeds != 1 || !slices.Equal(p.IDs, want.own) || !slices.Equal(k.IDs, want.sources) || !slices.Equal(e.Indices, want.indices) || !slices.Equal(e.EdgePos, want.pos) {
					t.Errorf("rank %d, %s: %d seeds, nodes %v, sources %v, edges from %v at %v, want %+v", rank, name, p.Seeds, p.IDs, k.IDs, e.Indices, e.EdgePos, want)
				}
				if h := &k.Halo; h.Own != 2 || h.Most != 4 || !slices.Equal(h.From[1-rank], want.from) || !slices.Equal(h.To[1-rank], want.to) {
					t.Errorf("rank %d, %s: halo %+v, want %+v", rank, name, h, want)
				}
				k.SetSums(0, g)
				if b := k.Halo.Sums.Block; !slices.Equal(b.Indices(), want.sums) || !slices.Equal(b.Indptr(), want.ends) {
					t.Errorf("rank %d, %s: sums over %v to %v, want %+v", rank, name, b.Indices(), b.Indptr(), want)
				}
			}
		}
	}
}

// all reads a part of one of two ranks from a whole message, and reports whether it is one.
func all(in []byte, p *graphops.RankPart, rank int) bool {
	short := false
	valid := p.Read(func(n int) []byte {
		if n > len(in) {
			in, short = nil, true
			return nil
		}
		b := in[:n]
		in = in[n:]
		return b
	}, rank, 2, true)
	return valid && !short && len(in) == 0
}

// A message whose numbers or length are wrong is refused or read as a part whose numbers are all in range; it never
// reads or writes beyond an array.
func TestPartRefuses(t *testing.T) {
	g := &graphops.Graph{Indptr: make([]int64, 21), EdgeWeights: []float32{}}
	hops := []graphops.HostBlock{
		{NumDst: 1, Graph: g, Indptr: []int64{0, 2}, Indices: []int32{1, 2}, EdgePos: []int64{0, 1}, Weights: []float32{1, 2}},
		{NumDst: 3, Level: 1, Graph: g, Indptr: []int64{0, 0, 1, 2}, Indices: []int32{3, 0}, EdgePos: []int64{2, 3}, Weights: []float32{3, 4}},
	}
	d := graphops.Division{World: 2, Owners: func(nodes []int32, owner []uint8) {
		for i, v := range nodes {
			owner[i] = uint8(v % 2)
		}
	}}
	ids, parts := []int32{10, 11, 12, 13}, make([]graphops.RankPart, 2)
	d.Nodes(parts, ids, hops)
	for i := range hops {
		d.Hop(parts, &hops[i], ids)
	}
	read := func(in []byte) (graphops.RankPart, bool) {
		p := graphops.RankPart{Hops: []graphops.HostBlock{{Graph: g}, {Level: 1, Graph: g}}, Coop: make([]graphops.RankHop, 2)}
		return p, all(in, &p, 0)
	}
	message := parts[0].Append(nil, 0, true)
	if p, ok := read(message); !ok || !slices.Equal(p.Hops[1].Weights, []float32{4}) {
		t.Fatalf("the message is refused, or has the weights %v", p.Hops[1].Weights)
	}
	for n := range message {
		if _, ok := read(message[:n]); ok {
			t.Errorf("the first %d bytes of %d are read", n, len(message))
		}
	}
	if _, ok := read(append(message, 0)); ok {
		t.Error("a longer message is read")
	}
	refused := 0
	for at := 0; at < len(message); at += 4 {
		for _, v := range []byte{0x7F, 0xFF} {
			wrong := slices.Clone(message)
			wrong[at+3] = v // makes the number large or negative
			p, ok := read(wrong)
			if !ok {
				refused++
				continue
			}
			for hop := range p.Hops {
				k := &p.Coop[hop]
				k.SetSums(hop, g)
				for _, i := range append(slices.Clone(p.Hops[hop].Indices), k.Indices...) {
					_ = k.IDs[i]
				}
				for _, to := range k.Halo.To {
					for _, i := range to {
						_ = k.IDs[i]
					}
				}
			}
		}
	}
	if refused < len(message)/4 {
		t.Errorf("only %d of %d wrong messages are refused", refused, len(message)/2)
	}
}
