package backend

import (
	"runtime"
	"unsafe"

	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/devblock"
	"github.com/graphnb/graphnb/cuda/kernels"
	"github.com/graphnb/graphnb/graphops"
)

// copied is the memory of a block's arrays that this backend put on the device.
type copied struct{ mem []*cuda.Buffer }

func (c *copied) free() {
	for _, m := range c.mem {
		m.Free()
	}
	c.mem = nil
}

// sharedGraph is a graph whose arrays kernels read.
type sharedGraph struct {
	host            *graphops.Graph
	indptr, indices cuda.Ptr
}

// ShareGraph says that g's Indptr (i64) and Indices (i32) lie where kernels read them,
// on the device or in host memory that it reads. They stay the caller's. Slices of g
// are read there from now on, rather than copied: whole-graph training, layer-wise
// inference.
func (b *Backend) ShareGraph(g *graphops.Graph, indptr, indices cuda.Ptr) {
	b.graph = sharedGraph{g, indptr, indices}
}

// has reports whether a block is a slice of the graph.
func (s *sharedGraph) has(m *graphops.Block) bool {
	g := s.host
	if g == nil || m.Graph != g || !m.RowsAreNodes() || m.EdgePos() != nil || unsafe.SliceData(m.Indices()) != unsafe.SliceData(g.Indices) {
		return false
	}
	lo := m.DstStart
	return lo+m.NumDst <= g.NumNodes() && unsafe.SliceData(m.Indptr()) == &g.Indptr[lo]
}

// arrays are a block's arrays on the device, copied there at its first use. A block
// that nothing refers to any more gives them back, so an operation keeps its block
// alive until the kernels that read them are asked for: an allocation between may
// find the memory again.
func (b *Backend) arrays(m *graphops.Block) *devblock.Arrays {
	if a := devblock.Of(m); a != nil {
		b.ready(a)
		return a
	}
	c := &copied{}
	a := &devblock.Arrays{Release: func(*devblock.Arrays) { c.free() }}
	// Blocks are let go of without a Reset too, such as slices of a graph.
	runtime.AddCleanup(a, func(c *copied) { c.free() }, c)
	indptr := m.Indptr()[:m.NumDst+1]
	first, last := indptr[0], indptr[m.NumDst]
	a.First, a.Long = first, b.long(c, indptr)
	if b.graph.has(m) {
		a.Indptr, a.Indices = b.graph.indptr+cuda.Ptr(8*m.DstStart), b.graph.indices
	} else {
		a.Indptr = put(b, c, indptr)
		a.Indices = put(b, c, m.Indices()[first:last]) - cuda.Ptr(4*first)
	}
	m.Dev = a
	return a
}

// long are the rows of more edges than a group of lanes takes, on the device.
func (b *Backend) long(c *copied, indptr []int64) devblock.List {
	var rows []int32
	for r := range len(indptr) - 1 {
		if indptr[r+1]-indptr[r] > kernels.LongRow {
			rows = append(rows, int32(r))
		}
	}
	if rows == nil {
		return devblock.List{}
	}
	return devblock.List{Ptr: put(b, c, rows), N: len(rows)}
}

// ready makes the compute stream wait for arrays that another stream writes.
func (b *Backend) ready(a *devblock.Arrays) {
	if a.Ready != nil {
		b.s.Wait(a.Ready)
		a.Ready = nil
	}
}

// transposed is arrays with the edges by source, which a block made on the host has
// from there.
func (b *Backend) transposed(m *graphops.Block) *devblock.Arrays {
	a := b.arrays(m)
	if !a.HasTransposed() {
		t, c := m.Transposed(), b.more(a)
		a.TIndptr, a.TDst, a.TEdge = put(b, c, t.Indptr[:m.NumSrc+1]), put(b, c, t.Dst), put(b, c, t.Edge)
		a.TLong = b.long(c, t.Indptr[:m.NumSrc+1])
	}
	return a
}

// positions are the block's EdgePos, 0 where the edges' own positions are.
func (b *Backend) positions(m *graphops.Block, a *devblock.Arrays) cuda.Ptr {
	if a.EdgePos == 0 && m.EdgePos() != nil {
		a.EdgePos = put(b, b.more(a), m.EdgePos()[:m.NumEdges()])
	}
	return a.EdgePos
}

// more is further memory of arrays, freed with what they have.
func (b *Backend) more(a *devblock.Arrays) *copied {
	c, release := &copied{}, a.Release
	cleanup := runtime.AddCleanup(a, func(c *copied) { c.free() }, c)
	a.Release = func(a *devblock.Arrays) {
		cleanup.Stop() // the arrays of a sampler's batch are used again, and never let go of
		c.free()
		if release != nil {
			release(a)
		}
	}
	return c
}

// put is a copy of host memory that c holds.
func put[T int32 | int64](b *Backend, c *copied, host []T) cuda.Ptr {
	m := b.alloc(cuda.Graph, len(host)*int(unsafe.Sizeof(*new(T))))
	c.mem = append(c.mem, m)
	fail(cuda.CopyIn(b.s, m.Ptr, host))
	return m.Ptr
}
