package graphops

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Block is the bipartite graph of one hop: NumDst destination rows receive from
// NumSrc source rows. It is what a layer computes on, whether it came from a
// sampler, is a slice of the whole graph (layer-wise inference) or is the whole
// graph (full-graph training).
//
// In-edges of destination row d are the positions e in [Indptr()[d], Indptr()[d+1]);
// Indices()[e] is the edge's source row. Indptr()[0] need not be 0: a block that is
// a slice of the graph shares the graph's arrays and starts in their middle.
//
// Destinations are sources too: destination row d is source row DstStart+d.
// Sampled blocks have DstStart 0, so their first NumDst sources are their
// destinations.
//
// A block's arrays are its methods, because they may lie in a device's memory: there
// a method copies an array to the host when it is first asked for, and waits for the
// copy; later calls return the same slice. On the CPU methods cost nothing. Operations
// of package tensor read the arrays where they are, so a layer made of those copies
// nothing. Arrays are read-only and valid as long as the block is. A device that fails
// makes these methods panic with its error, which the operations of package nn, and a
// run, return.
//
// A block is read-only once made and safe for concurrent use. [HostBlock] makes one.
type Block struct {
	NumDst, NumSrc int
	// Level is the number of layers between this block's destinations and the
	// seeds: 0 for the last layer's block.
	Level    int
	DstStart int
	// Graph is the graph that the block is of, from which layers learn the whole
	// in-degrees of its nodes; nil where it is unknown.
	Graph *Graph

	// Dev is the block's arrays in a device's memory, in a form that is the device's
	// backend's: put there by it at first use, or by a sampler that runs there; nil
	// on the CPU. Where it has a method Reset(), [Block.Reset] calls that and keeps
	// it, for its memory to be used again; else it drops it.
	Dev any

	// The arrays in the host's memory, unless remote has them.
	indptr  []int64
	indices []int32
	edgePos []int64
	srcIDs  []int32
	weights []float32
	remote  Remote

	once sync.Once
	t    *Transposed
	made atomic.Bool // t

	loopOnce sync.Once
	looped   *Block
	spare    *Block // memory for looped

	memo memo
}

// HostBlock is what a [Block] of arrays in the host's memory is made of; the fields
// are what the block's fields and methods of the same names return.
type HostBlock struct {
	NumDst, NumSrc  int
	Level, DstStart int
	Graph           *Graph
	Indptr          []int64   // [NumDst+1]
	Indices         []int32   // source rows
	EdgePos         []int64   // [edges], or nil
	SrcIDs          []int32   // [NumSrc], or nil
	Weights         []float32 // [edges], or nil
}

// Block is a block of these arrays, which it shares.
func (h HostBlock) Block() *Block {
	b := &Block{}
	b.SetHost(h)
	return b
}

// SetHost makes b the block of these arrays, in place of what it was, as after
// [Block.Reset].
func (b *Block) SetHost(h HostBlock) {
	b.Reset()
	b.NumDst, b.NumSrc, b.Level, b.DstStart, b.Graph = h.NumDst, h.NumSrc, h.Level, h.DstStart, h.Graph
	b.indptr, b.indices, b.edgePos, b.srcIDs, b.weights, b.remote = h.Indptr, h.Indices, h.EdgePos, h.SrcIDs, h.Weights, nil
}

// Remote is where a block's arrays are when they are not in the host's memory. Its
// methods bring an array to the host at their first call, return the same slice
// later, and may be called by several goroutines; they panic where the device has
// failed. Slices are never nil, but for Weights where the block has none.
type Remote interface {
	NumEdges() int
	Indptr() []int64
	Indices() []int32
	EdgePos() []int64
	SrcIDs() []int32
	// Weighted tells whether the edges have weights.
	Weighted() bool
	Weights() []float32
	// IDsOf names the array of ids that SrcIDs is the beginning of: blocks with equal
	// names share their ids, row for row.
	IDsOf() any
}

// SetRemote makes b a block whose arrays r has: those of a block that begins at edge
// 0 and whose rows have ids. It replaces what b was, as after [Block.Reset]. The
// operations of r's device read them there, by Dev.
func (b *Block) SetRemote(r Remote, dst, src, level int, g *Graph) {
	b.Reset()
	b.NumDst, b.NumSrc, b.Level, b.DstStart, b.Graph = dst, src, level, 0, g
	b.indptr, b.indices, b.edgePos, b.srcIDs, b.weights, b.remote = nil, nil, nil, nil, nil, r
}

// Remote is where the block's arrays are if not in the host's memory, else nil.
func (b *Block) Remote() Remote { return b.remote }

// Reset forgets what was derived from the block's arrays. Memory of it is used again:
// nobody may use it any more.
func (b *Block) Reset() {
	b.once, b.t = sync.Once{}, nil
	b.made.Store(false)
	if b.looped != nil {
		b.spare = b.looped
	}
	b.loopOnce, b.looped = sync.Once{}, nil
	if d, ok := b.Dev.(interface{ Reset() }); ok {
		d.Reset()
	} else {
		b.Dev = nil
	}
	if len(b.memo.kept) > 0 { // else what is spare stays
		clear(b.memo.spare)
		b.memo.kept, b.memo.spare = b.memo.spare[:0], b.memo.kept
	}
}

// Indptr is where the in-edges of destination rows begin, [NumDst+1].
func (b *Block) Indptr() []int64 {
	if b.remote != nil {
		return b.remote.Indptr()
	}
	return b.indptr
}

// Indices is the source row of each edge: Indices()[e] is edge e's.
func (b *Block) Indices() []int32 {
	if b.remote != nil {
		return b.remote.Indices()
	}
	return b.indices
}

// EdgePos is the CSC position, in the graph, of each edge: EdgePos()[e-Indptr()[0]]
// is that of edge e. It is nil where the position is e itself.
func (b *Block) EdgePos() []int64 {
	if b.remote != nil {
		return b.remote.EdgePos()
	}
	return b.edgePos
}

// SrcIDs is the global id of each source row, or nil where row s is node s.
func (b *Block) SrcIDs() []int32 {
	if b.remote != nil {
		return b.remote.SrcIDs()
	}
	return b.srcIDs
}

// Weights is the weight of each edge: Weights()[e-Indptr()[0]] is that of edge e. It is
// nil where every edge weighs 1.
func (b *Block) Weights() []float32 {
	if b.remote != nil {
		return b.remote.Weights()
	}
	return b.weights
}

// Weighted tells whether the edges have weights. It copies nothing from a device.
func (b *Block) Weighted() bool {
	if b.remote != nil {
		return b.remote.Weighted()
	}
	return b.weights != nil
}

// RowsAreNodes tells whether source row s is node s, as in the whole graph and slices of
// it. It copies nothing from a device.
func (b *Block) RowsAreNodes() bool { return b.remote == nil && b.srcIDs == nil }

// NumEdges is the number of edges of the block.
func (b *Block) NumEdges() int {
	if b.remote != nil {
		return b.remote.NumEdges()
	}
	return int(b.indptr[b.NumDst] - b.indptr[0])
}

// InDegree is the number of in-edges of destination row d.
func (b *Block) InDegree(d int) int {
	indptr := b.Indptr()
	return int(indptr[d+1] - indptr[d])
}

// SrcID is the global id of source row s.
func (b *Block) SrcID(s int) int32 {
	if b.RowsAreNodes() {
		return int32(s)
	}
	return b.SrcIDs()[s]
}

// DstID is the global id of destination row d.
func (b *Block) DstID(d int) int32 { return b.SrcID(b.DstStart + d) }

// Pos is the CSC position, in the graph, of the block's edge e.
func (b *Block) Pos(e int64) int64 {
	pos := b.EdgePos()
	if pos == nil {
		return e
	}
	return pos[e-b.Indptr()[0]]
}

// Weight is the weight of the block's edge e.
func (b *Block) Weight(e int64) float32 {
	if !b.Weighted() {
		return 1
	}
	return b.Weights()[e-b.Indptr()[0]]
}

func (b *Block) String() string {
	return fmt.Sprintf("block: %d destinations, %d sources, %d edges", b.NumDst, b.NumSrc, b.NumEdges())
}

// Transposed is a block's edges grouped by source: the out-edges of source row s
// are the entries i in [Indptr[s], Indptr[s+1]); Dst[i] is the destination row
// and Edge[i] the edge's number counted from 0 (its position less the block's
// Indptr[0]). Within a source, edges ascend, so sums over them have one order.
type Transposed struct {
	Indptr []int64 // [NumSrc+1]
	Dst    []int32
	Edge   []int32

	work transposing
}

// Transposed returns the block's edges grouped by source, made at the first call
// by a counting sort (O(sources + edges)) and kept. It panics for a block of 2^31
// edges or more.
func (b *Block) Transposed() *Transposed {
	b.once.Do(func() {
		t := &Transposed{}
		t.make(b, 0)
		t.work = transposing{} // nobody makes another in this memory
		b.t = t                // not before: a panic must not leave half of it
		b.made.Store(true)
	})
	return b.t
}

// HasTransposed tells whether the transpose has been made.
func (b *Block) HasTransposed() bool { return b.made.Load() }

// Transpose makes what [Block.Transposed] returns from now on, in the memory of
// t, on a number of threads that does not show in the result. Where the
// transpose was made already it does nothing.
func (b *Block) Transpose(t *Transposed, threads int) {
	b.once.Do(func() {
		t.make(b, threads)
		b.t = t
		b.made.Store(true)
	})
}
