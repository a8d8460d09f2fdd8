package backend

import (
	"errors"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// sliceRoom is memory for the sources of a slice of the graph. Its content belongs to the running
// operation; the next one on the stream may overwrite it.
type sliceRoom struct{ marks, ids, rows *cuda.Buffer }

func (r *sliceRoom) free() {
	for _, m := range []**cuda.Buffer{&r.marks, &r.ids, &r.rows} {
		(*m).Free()
		*m = nil
	}
}

// sliceSources returns the rows of the distinct sources of a slice of the graph, gathered from a
// table in the host's memory, and the slice's indices into these rows, if that is faster (see
// [sizes.GatherFirst]): layer-wise inference then reads a row of features once per chunk rather than once
// per edge. For the whole graph these rows would be the whole table. It waits for the number of
// sources. ok is false if the operation must read the table directly.
func (b *Backend) sliceSources(m *graphops.Block, a *cuda.BlockArrays, table ops.Buffer, cols int) (x, indices cuda.Ptr, ok bool) {
	nodes, edges, t := m.NumSrc, m.NumEdges(), tableOf(table)
	if !t.Host || table.Off != 0 || cols == 0 || edges == 0 || m.NumDst == nodes || !b.graph.has(m) {
		return 0, 0, false
	}
	words := (nodes + 31) / 32
	tiles := (words + 31) / 32
	r := &b.slice
	if !b.tryRoom(&r.marks, 16+8*tiles+8*words) {
		return 0, 0, false
	}
	count := r.marks.Ptr
	items, sums := count+8, count+16
	bits := sums + cuda.Ptr(8*tiles)
	before := bits + cuda.Ptr(4*words)
	list := a.Indices + cuda.Ptr(4*a.First)
	fail(cuda.CopyIn(b.s, items, []int64{int64(nodes)}))
	b.s.Fill32(bits, 0, int64(words))
	b.run("distinct_mark", kernels.Items(edges), bits, list, edges)
	b.run("distinct_count", kernels.Warps(tiles), sums, bits, words)
	b.run("sample_scan", kernels.Blocks(1), sums, items, 1, 1, 0, count, nodes, 0)
	var distinct [1]int64
	fail(cuda.CopyOut(b.s, distinct[:], count))
	n := int(distinct[0])
	if !sizes.GatherFirst(edges, n) || !b.tryRoom(&r.ids, 4*(n+edges)) || !b.tryRoom(&r.rows, 4*n*cols) {
		return 0, 0, false
	}
	ids, local := r.ids.Ptr, r.ids.Ptr+cuda.Ptr(4*n)
	b.run("distinct_list", kernels.Warps(tiles), ids, before, sums, bits, words)
	b.run("distinct_local", kernels.Items(edges), local, list, bits, before, edges)
	b.gather(r.rows.Ptr, addr(table), ids, n, cols, t)
	return r.rows.Ptr, local - cuda.Ptr(4*a.First), true
}

// tryRoom is room, but returns nothing if there is no memory. A failure of the device is reported
// elsewhere.
func (b *Backend) tryRoom(m **cuda.Buffer, n int) bool {
	if *m != nil && (*m).Bytes >= int64(n) {
		return true
	}
	(*m).Free()
	*m = nil
	mem, err := b.d.Alloc(cuda.Activations, int64(n+n/4))
	if errors.Is(err, cuda.OutOfMemory) {
		mem, err = b.d.Alloc(cuda.Activations, int64(n))
	}
	*m = mem
	return err == nil
}
