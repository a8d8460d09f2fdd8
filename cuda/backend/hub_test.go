//go:build cuda && linux && cgo

package backend

import (
	"testing"

	"github.com/graphnb/graphnb/cuda/devblock"
	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// The kernels of long rows are started where there is a long row, in the direction in which there is one, and
// nowhere else, however many edges a block has.
func TestHubKernelsOnlyForLongRows(t *testing.T) {
	star := func(n int) graphops.HostBlock { // n edges into one destination, from n sources
		h := graphops.HostBlock{NumDst: 1, NumSrc: n, Indptr: []int64{0, int64(n)}}
		for s := range n {
			h.Indices = append(h.Indices, int32(s))
		}
		return h
	}
	fan := graphops.HostBlock{NumDst: 300, NumSrc: 301, Indptr: []int64{0}} // an edge into each of 300, from one source
	for d := range 300 {
		fan.Indices, fan.Indptr = append(fan.Indices, 300), append(fan.Indptr, int64(d+1))
	}
	ring := graphops.HostBlock{NumDst: 300, NumSrc: 300, Indptr: []int64{0}} // two in, two out
	for d := range 300 {
		ring.Indices, ring.Indptr = append(ring.Indices, int32((d+1)%300), int32((d+2)%300)), append(ring.Indptr, int64(2*d+2))
	}
	for name, c := range map[string]struct {
		h                  graphops.HostBlock
		forward, backwards int64
	}{
		"a long row":             {star(257), 1, 0},
		"the longest short row":  {star(256), 0, 0},
		"a source of many edges": {fan, 0, 1},
		"many edges, short rows": {ring, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			be := open(t, fakegpu.Config{NoRaces: true})
			b := c.h.Block()
			defer b.Reset()
			x, y := be.Alloc(b.NumSrc), be.Alloc(b.NumDst)
			defer be.Free(x)
			defer be.Free(y)
			be.Zero(x)
			be.Zero(y)
			hubs := func() int64 {
				t.Helper()
				if err := be.s.Sync(); err != nil {
					t.Fatal(err)
				}
				return be.d.Launches()["hub_f32"]
			}
			be.SpMM(tensor.Sum, y, tensor.Buffer{}, b, x, 1)
			if n := hubs(); n != c.forward {
				t.Errorf("forward, hub_f32 is launched %d times, want %d", n, c.forward)
			}
			before := hubs()
			be.SpMMGrad(tensor.Sum, x, y, tensor.Buffer{}, b, 1, false)
			if n := hubs() - before; n != c.backwards {
				t.Errorf("backward, hub_f32 is launched %d times, want %d", n, c.backwards)
			}
			if a := devblock.Of(b); a.NoLong != (c.forward == 0) || a.TNoLong != (c.backwards == 0) {
				t.Errorf("the block says of its rows: %v and %v", a.NoLong, a.TNoLong)
			}
		})
	}
}
