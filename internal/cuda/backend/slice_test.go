//go:build cuda && linux && cgo

package backend

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// A slice of the graph first gathers the rows of its distinct sources from a table in host memory,
// with and without a cache, if its edges would read enough of them more than once. Results have the
// bits of a table on the device.
func TestSlicesGatherSources(t *testing.T) {
	t.Setenv("GNB_CUDA_EXACT", "1") // every buffer is an allocation of its own
	be := open(t, fakegpu.Config{})
	const nodes, cols = 70, 6
	g := &graphops.Graph{Indptr: []int64{0}}
	for d := range nodes {
		for e := range d % 9 {
			v := int32(d*e*7%nodes) / 4 * 4 // sources that many destinations share
			if d >= nodes/2 {
				v = int32((d*8 + e) % nodes) // in the second half almost every edge has its own source
			}
			g.Indices = append(g.Indices, v)
		}
		slices.Sort(g.Indices[g.Indptr[d]:])
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	table := make([]float32, nodes*cols)
	for i := range table {
		table[i] = float32(i%29) / 4
	}
	weights := make([]float32, len(g.Indices))
	for e := range weights {
		weights[e] = float32(e) / 3
	}
	at := be.alloc(cuda.Features, 4*len(table))
	defer at.Free()
	if err := cuda.CopyIn(be.s, at.Ptr, table); err != nil {
		t.Fatal(err)
	}
	be.ShareGraph(g, upload(t, be, g.Indptr), upload(t, be, g.Indices))
	pass := func(mem *Memory, lo, hi int) (out []float32) {
		be.Share(table, mem)
		defer be.Drop(table)
		f := tensor.NewFwd(tensor.Config{Backend: be})
		defer f.Close()
		b := g.Slice(lo, hi)
		x := f.Input(nodes, cols, table, &tensor.Space{})
		for _, op := range []tensor.Op{tensor.Sum, tensor.Mean, tensor.Max} {
			out = append(out, f.Aggregate(b, x, op).Data()...)
		}
		return append(out, f.AggregateWeighted(b, x, weights[g.Indptr[lo]:g.Indptr[hi]], tensor.Sum).Data()...)
	}
	slots := make([]int32, nodes)
	for v := range slots {
		slots[v] = -1
	}
	slots[8] = 0 // row 8 is in the cache as well
	cached := &Memory{Ptr: at.Ptr, Host: true, Cache: at.Ptr + 4*8*cols, Slots: upload(t, be, slots)}
	for _, c := range []struct {
		lo, hi  int
		gathers bool
	}{{0, nodes / 2, true}, {3, 20, true}, {9, 10, false}, {36, 38, false}, {0, nodes, false}} {
		want := pass(&Memory{Ptr: at.Ptr}, c.lo, c.hi)
		for _, mem := range []*Memory{{Ptr: at.Ptr, Host: true}, cached} {
			before := be.Device().Launches()["distinct_local"]
			if got := pass(mem, c.lo, c.hi); !slices.Equal(got, want) {
				t.Errorf("nodes [%d,%d): %v, want %v as from a table on the device", c.lo, c.hi, got, want)
			}
			if n := be.Device().Launches()["distinct_local"] - before; (n == 4) != c.gathers || n != 0 && n != 4 {
				t.Errorf("nodes [%d,%d): rows were gathered %d times", c.lo, c.hi, n)
			}
		}
	}
}

// The memory into which slices have gathered rows is freed for an allocation that finds no room.
func TestSlicesGiveTheirMemory(t *testing.T) {
	t.Setenv("GNB_CUDA_EXACT", "1")
	be := open(t, fakegpu.Config{Memory: 8 << 20})
	const half = 2 << 20
	if !be.tryRoom(&be.slice.rows, half) || !be.tryRoom(&be.slice.ids, 100) {
		t.Fatal("there is no room")
	}
	m := be.Device().Memory()
	if be.tryRoom(&be.slice.marks, int(m.Limit)) {
		t.Error("tryRoom took more memory than the limit")
	}
	be.alloc(cuda.Workspace, int(m.Limit-m.Reserved)+half/2).Free()
	if be.slice.rows != nil || be.slice.ids != nil {
		t.Error("the rows are still held")
	}
}
