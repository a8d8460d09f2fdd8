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
// In-edges of destination row d are the positions e in [Indptr[d], Indptr[d+1]);
// Indices[e] is the edge's source row. Indptr[0] need not be 0: a block that is
// a slice of the graph shares the graph's arrays and starts in their middle.
//
// Destinations are sources too: destination row d is source row DstStart+d.
// Sampled blocks have DstStart 0, so their first NumDst sources are their
// destinations.
//
// A block is read-only once made and safe for concurrent use.
type Block struct {
	NumDst, NumSrc int
	// Level is the number of layers between this block's destinations and the
	// seeds: 0 for the last layer's block.
	Level    int
	DstStart int
	Indptr   []int64 // [NumDst+1]
	Indices  []int32 // source rows
	// EdgePos[e-Indptr[0]] is the CSC position of edge e in the graph, or nil
	// where the position is e itself.
	EdgePos []int64
	// SrcIDs[s] is the global id of source row s, or nil where row s is node s.
	SrcIDs []int32
	// Graph is the graph that the block is of, from which layers learn the whole
	// in-degrees of its nodes; nil where it is unknown.
	Graph *Graph
	// Weights[e-Indptr[0]] is the weight of edge e; nil where every edge weighs 1.
	Weights []float32

	// Dev is the block's arrays in a device's memory, in a form that is the device's
	// backend's: put there by it at first use, or by a sampler that runs there; nil
	// on the CPU. Where it has a method Reset(), [Block.Reset] calls that and keeps
	// it, for its memory to be used again; else it drops it.
	//
	// A block sampled on a device may have its arrays there only: Indptr is nil then,
	// and so are the other slices, whatever that means above. Such a block serves the
	// operations of that device's backend alone.
	Dev any
	// DevEdges is the number of edges of a block whose Indptr is nil.
	DevEdges int

	once sync.Once
	t    *Transposed
	made atomic.Bool // t

	loopOnce sync.Once
	looped   *Block
	spare    *Block // memory for looped

	memo memo
}

// Reset forgets what was derived from the block, for the fields to be set anew.
// Memory of what was derived is used again: nobody may use it any more.
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
	b.DevEdges = 0
	clear(b.memo.spare)
	b.memo.kept, b.memo.spare = b.memo.spare[:0], b.memo.kept
}

// NumEdges is the number of edges of the block.
func (b *Block) NumEdges() int {
	if b.Indptr == nil {
		return b.DevEdges
	}
	return int(b.Indptr[b.NumDst] - b.Indptr[0])
}

// InDegree is the number of in-edges of destination row d.
func (b *Block) InDegree(d int) int { return int(b.Indptr[d+1] - b.Indptr[d]) }

// SrcID is the global id of source row s.
func (b *Block) SrcID(s int) int32 {
	if b.SrcIDs == nil {
		return int32(s)
	}
	return b.SrcIDs[s]
}

// DstID is the global id of destination row d.
func (b *Block) DstID(d int) int32 { return b.SrcID(b.DstStart + d) }

// Pos is the CSC position, in the graph, of the block's edge e.
func (b *Block) Pos(e int64) int64 {
	if b.EdgePos == nil {
		return e
	}
	return b.EdgePos[e-b.Indptr[0]]
}

// Weight is the weight of the block's edge e.
func (b *Block) Weight(e int64) float32 {
	if b.Weights == nil {
		return 1
	}
	return b.Weights[e-b.Indptr[0]]
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
