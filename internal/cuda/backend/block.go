package backend

import (
	"runtime"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// copied is the device memory of a block's arrays that this backend has allocated.
type copied struct{ mem []*cuda.Buffer }

func (c *copied) free() {
	for _, m := range c.mem {
		m.Free()
	}
	c.mem = nil
}

// sharedGraph is a graph whose arrays kernels read directly.
type sharedGraph struct {
	host            *graphops.Graph
	indptr, indices cuda.Ptr
}

// ShareGraph gives the addresses of g's Indptr (i64) and Indices (i32), on the device or in host
// memory that it can read. The caller owns them. Operations on slices of g (whole-graph training,
// layer-wise inference) then read these arrays instead of copying them.
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

// arrays returns a block's arrays on the device. They are copied at the block's first use and freed
// when the block becomes unreachable, so an operation keeps its block alive until it has launched
// the kernels that read them: an allocation before that could reuse their memory.
func (b *Backend) arrays(m *graphops.Block) *cuda.BlockArrays {
	if a := cuda.ArraysOf(m); a != nil {
		b.ready(a)
		return a
	}
	c := &copied{}
	a := &cuda.BlockArrays{Release: func(*cuda.BlockArrays) { c.free() }}
	// Some blocks, such as slices of a graph, are dropped without a Reset.
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

// long lists, on the device, the chunks of rows with more edges than a group of lanes adds.
func (b *Backend) long(c *copied, indptr []int64) cuda.ChunkList {
	list, parts := kernels.Chunks(indptr)
	if list == nil {
		return cuda.ChunkList{}
	}
	return cuda.ChunkList{Ptr: put(b, c, list), N: len(list) / 4, Parts: parts}
}

// ready makes the compute stream wait for arrays that another stream writes.
func (b *Backend) ready(a *cuda.BlockArrays) {
	if a.Ready != nil {
		b.s.Wait(a.Ready)
		a.Ready = nil
	}
}

// transposed is arrays with the edges ordered by source. For a block made on the host, and for the first blocks of a
// sampler that was not told of it, the host computes that order.
func (b *Backend) transposed(m *graphops.Block) *cuda.BlockArrays {
	a := b.arrays(m)
	if !a.HasTransposed() {
		if a.Turn != nil {
			a.Turn()
		}
		t, c := m.Transposed(), b.more(a)
		a.TIndptr, a.TDst, a.TEdge = put(b, c, t.Indptr[:m.NumSrc+1]), put(b, c, t.Dst), put(b, c, t.Edge)
		a.TLong = b.long(c, t.Indptr[:m.NumSrc+1])
	}
	return a
}

// positions returns the address of the block's EdgePos, or 0 if edge i has position i.
func (b *Backend) positions(m *graphops.Block, a *cuda.BlockArrays) cuda.Ptr {
	if a.EdgePos == 0 && m.EdgePos() != nil {
		a.EdgePos = put(b, b.more(a), m.EdgePos()[:m.NumEdges()])
	}
	return a.EdgePos
}

// more allocates further memory for arrays, which is freed with them.
func (b *Backend) more(a *cuda.BlockArrays) *copied {
	c, release := &copied{}, a.Release
	cleanup := runtime.AddCleanup(a, func(c *copied) { c.free() }, c)
	a.Release = func(a *cuda.BlockArrays) {
		cleanup.Stop() // a sampler reuses the arrays of its batches and never frees them
		c.free()
		if release != nil {
			release(a)
		}
	}
	return c
}

// put copies host memory to the device; c records the copy.
func put[T int32 | int64](b *Backend, c *copied, host []T) cuda.Ptr {
	m := b.alloc(cuda.Graph, len(host)*int(unsafe.Sizeof(*new(T))))
	c.mem = append(c.mem, m)
	fail(cuda.CopyIn(b.s, m.Ptr, host))
	return m.Ptr
}
