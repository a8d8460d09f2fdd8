package graphops

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Block is the bipartite graph of one hop: NumDst destination rows receive messages from NumSrc
// source rows. Layers compute on blocks. A block comes from a sampler, is a slice of the whole
// graph (layer-wise inference), or is the whole graph (full-graph training).
//
// In-edges of destination row d are the positions e in [Indptr()[d], Indptr()[d+1]); Indices()[e]
// is the edge's source row. Indptr()[0] need not be 0: a block that is a slice of the graph shares
// the graph's arrays and starts in their middle.
//
// Destinations are sources too: destination row d is source row DstStart+d. Sampled blocks have
// DstStart 0, so their first NumDst sources are their destinations. The blocks of [Groups] and
// [Spread] are the exception.
//
// A block's arrays are returned by methods, because the arrays may be in a device's memory. The
// first call of such a method copies the array to the host and waits for the copy; later calls
// return the same slice. On the CPU the methods copy nothing. Operations of package tensor read the
// arrays in place, so a layer built from them copies nothing. Arrays are read-only and valid as
// long as the block. If the device fails, these methods panic with the device's error; the
// operations of package nn, and a run, return that error.
//
// A block is read-only once made and safe for concurrent use. [HostBlock] makes one.
type Block struct {
	NumDst, NumSrc int
	// Level is the number of layers between this block's destinations and the
	// seeds: 0 for the last layer's block.
	Level    int
	DstStart int
	// Graph is the graph that the block was taken from, or nil if unknown or not in this process.
	Graph *Graph
	// Halo is set in a block of a cooperative batch, some of whose source rows other ranks compute.
	Halo *Halo

	// Dev holds the block's arrays in a device's memory, in the format of the device's backend; nil
	// on the CPU. The backend sets it at first use, or a sampler on the device sets it. If Dev has
	// a method Reset(), [Block.Reset] calls it and keeps Dev, so that its memory is reused;
	// otherwise Block.Reset drops Dev.
	Dev any

	// The arrays in the host's memory, unless remote has them.
	indptr   []int64
	indices  []int32
	edgePos  []int64
	srcIDs   []int32
	weights  []float32
	remote   Remote
	degrees  Degrees // nil: those of Graph
	sliceOf  int
	own      EdgeData // without weights
	ownRows  []int32  // the row of each edge in own, -1 for an added self-loop; nil: edge e-Indptr()[0] has that row
	relation int      // see HostBlock
	asOf     bool     // see HostBlock
	trees    []int32  // see HostBlock
	times    []int64  // of the trees
	apart    bool     // see HostBlock

	once sync.Once
	t    *Transposed
	made atomic.Bool // t

	loopOnce sync.Once
	looped   *Block
	loopMade atomic.Bool // looped
	spare    *Block      // memory for looped

	memo memo
}

// HostBlock holds the arrays of a [Block] in the host's memory; each field is the value of the
// block's field or method of the same name.
type HostBlock struct {
	NumDst, NumSrc  int
	Level, DstStart int
	Graph           *Graph
	Degrees         Degrees   // nil: those of Graph
	SliceOf         int       // see [Block.SliceOf]; 0 unless the rows are numbered otherwise than the nodes
	Indptr          []int64   // [NumDst+1]
	Indices         []int32   // source rows
	EdgePos         []int64   // [edges], or nil
	SrcIDs          []int32   // [NumSrc], or nil
	Weights         []float32 // [edges], or nil
	// Edges are the features and times of the edges [edges] if Graph does not have them, as in a block of
	// a divided graph. Its Weights are not read.
	Edges EdgeData
	Halo  *Halo
	// Relation is 1 more than the relation of all edges, in a block of one relation; 0 in any other.
	Relation int
	// AsOf says that the block is of seeds with times: its edges are those up to the times, and the degrees of the whole
	// graph would tell a layer of later ones. So [Block.Degrees] are nil.
	AsOf bool
	// Trees is the tree of each destination [NumDst] and TreeTimes the time of each tree's seed, of a block of seeds with times:
	// see [Block.SeedTime]. Both or none.
	Trees     []int32
	TreeTimes []int64
	// Apart says that the destinations are no sources, as the groups of [Groups] are no rows: DstStart is not read, no layer may
	// ask for the destinations' own rows or for self-loops, and rows have no ids, so results of the block have no space.
	Apart bool
}

// Block returns a block that shares these arrays.
func (h HostBlock) Block() *Block {
	b := &Block{}
	b.SetHost(h)
	return b
}

// SetHost replaces the contents of b with these arrays, after a [Block.Reset].
func (b *Block) SetHost(h HostBlock) {
	b.Reset()
	b.NumDst, b.NumSrc, b.Level, b.DstStart, b.Graph, b.Halo = h.NumDst, h.NumSrc, h.Level, h.DstStart, h.Graph, h.Halo
	b.indptr, b.indices, b.edgePos, b.srcIDs, b.weights, b.remote = h.Indptr, h.Indices, h.EdgePos, h.SrcIDs, h.Weights, nil
	b.degrees, b.sliceOf, b.relation, b.asOf, b.apart = h.Degrees, h.SliceOf, h.Relation, h.AsOf, h.Apart
	b.trees, b.times = h.Trees, h.TreeTimes
	b.setOwn(h.Edges, nil)
}

// Remote provides a block's arrays when they are not in the host's memory. The first call of a
// method copies the array to the host; later calls return the same slice. The methods are safe for
// concurrent use, and panic if the device has failed. Slices are never nil, except Weights of an
// unweighted block.
type Remote interface {
	NumEdges() int
	Indptr() []int64
	Indices() []int32
	EdgePos() []int64
	SrcIDs() []int32
	// Weighted reports whether the edges have weights.
	Weighted() bool
	Weights() []float32
	// IDsOf identifies the array of ids of which SrcIDs is a prefix: blocks with equal values share
	// their ids, row for row.
	IDsOf() any
}

// LoopedRemote is a [Remote] that can have the block with self-loops where the block's arrays are.
type LoopedRemote interface {
	Remote
	// SelfLooped makes l the block of [Block.SelfLooped] of b, by a SetRemote, and returns true. It returns false if the
	// arrays are not there: then the host makes the block from the arrays that it copies.
	SelfLooped(b, l *Block) bool
}

// SetRemote replaces the contents of b with a block whose arrays r provides, after a [Block.Reset].
// The block begins at edge 0, and its rows have ids. Operations on r's device read the arrays
// there, through Dev.
func (b *Block) SetRemote(r Remote, dst, src, level int, g *Graph) {
	b.Reset()
	b.NumDst, b.NumSrc, b.Level, b.DstStart, b.Graph, b.Halo = dst, src, level, 0, g, nil
	b.indptr, b.indices, b.edgePos, b.srcIDs, b.weights, b.remote = nil, nil, nil, nil, nil, r
	b.degrees, b.sliceOf, b.relation, b.asOf, b.apart = nil, 0, 0, false, false
	b.trees, b.times = nil, nil
	b.setOwn(EdgeData{}, nil)
}

// Degrees returns the degrees of the whole graph, of which the block is a part, or nil if they are
// unknown or must not be known (see [Block.AsOf]). Layers normalise by them.
func (b *Block) Degrees() Degrees {
	switch {
	case b.asOf:
		return nil
	case b.degrees != nil:
		return b.degrees
	case b.Graph != nil:
		return b.Graph
	}
	return nil
}

// AsOf reports whether the block is of seeds with times, which must not know of later edges.
func (b *Block) AsOf() bool { return b.asOf }

// Remote returns the provider of the block's arrays if they are not in the host's memory, else nil.
func (b *Block) Remote() Remote { return b.remote }

// Reset drops everything derived from the block's arrays. Later derived values reuse that memory,
// so the old ones must not be used any more.
func (b *Block) Reset() {
	b.once, b.t = sync.Once{}, nil
	b.made.Store(false)
	if b.looped != nil {
		b.spare = b.looped
	}
	b.loopOnce, b.looped = sync.Once{}, nil
	b.loopMade.Store(false)
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

// Indptr returns the offsets of the destination rows' in-edges, [NumDst+1].
func (b *Block) Indptr() []int64 {
	if b.remote != nil {
		return b.remote.Indptr()
	}
	return b.indptr
}

// Indices returns the source row of each edge: Indices()[e] is edge e's.
func (b *Block) Indices() []int32 {
	if b.remote != nil {
		return b.remote.Indices()
	}
	return b.indices
}

// EdgePos returns each edge's CSC position in the graph: EdgePos()[e-Indptr()[0]] is edge e's. It
// is nil if the position is e itself.
func (b *Block) EdgePos() []int64 {
	if b.remote != nil {
		return b.remote.EdgePos()
	}
	return b.edgePos
}

// SrcIDs returns the global id of each source row, or nil if row s is node s.
func (b *Block) SrcIDs() []int32 {
	if b.remote != nil {
		return b.remote.SrcIDs()
	}
	return b.srcIDs
}

// Weights returns the weight of each edge: Weights()[e-Indptr()[0]] is edge e's. It is nil if every
// edge has weight 1.
func (b *Block) Weights() []float32 {
	if b.remote != nil {
		return b.remote.Weights()
	}
	return b.weights
}

// Weighted reports whether the edges have weights. It copies nothing from a device.
func (b *Block) Weighted() bool {
	if b.remote != nil {
		return b.remote.Weighted()
	}
	return b.weights != nil
}

// RowsAreNodes reports whether source row s is node s, as in the whole graph and its slices. It
// copies nothing from a device.
func (b *Block) RowsAreNodes() bool { return b.remote == nil && b.srcIDs == nil }

// SliceOf is the number of nodes of the whole graph if the block is a slice of it: the destinations have
// all their in-edges, and successive blocks share their sources, as in layer-wise inference. It is 0
// for a sampled block. Layers choose by it in which order to compute, so that parts of a divided graph
// have the whole graph's bits.
func (b *Block) SliceOf() int {
	if b.RowsAreNodes() && !b.apart {
		return b.NumSrc
	}
	return b.sliceOf
}

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

// Transposed returns the block's edges grouped by source. The first call computes them by a
// counting sort (O(sources + edges)) and stores them. It panics for a block of 2^31 edges or more.
func (b *Block) Transposed() *Transposed {
	b.once.Do(func() {
		t := &Transposed{}
		t.make(b, 0)
		t.work = transposing{} // a later transpose must not reuse this memory
		b.t = t                // set last: a panic must not leave half of it
		b.made.Store(true)
	})
	return b.t
}

// HasTransposed reports whether the transpose has been made.
func (b *Block) HasTransposed() bool { return b.made.Load() }

// Transpose computes the value of [Block.Transposed] in the memory of t. It does nothing if the
// transpose exists already. The number of threads does not change the result.
func (b *Block) Transpose(t *Transposed, threads int) {
	b.once.Do(func() {
		t.make(b, threads)
		b.t = t
		b.made.Store(true)
	})
}
