// This file holds the arrays of a [graphops.Block] in a device's memory, the value of Block.Dev. For a block made on the host, the device's backend creates them at first use; for a
// block sampled on the device, package internal/cuda/sampler does. The package that created them owns the
// memory.

package cuda

import (
	"github.com/graphnb/graphnb/graphops"
)

// BlockArrays are a block's arrays, laid out and numbered as the block's slices are. A
// pointer is 0 where the block has no such slice (EdgePos, SrcIDs, Weights) or it
// was not put there (the transpose).
type BlockArrays struct {
	// First is Indptr[0].
	First   int64
	Indptr  Ptr // i64 [NumDst+1]
	Indices Ptr // i32 [edges]
	EdgePos Ptr // i64 [edges]
	SrcIDs  Ptr // i32 [NumSrc]
	Weights Ptr // f32 [edges]

	// The block's edges grouped by source, as [graphops.Transposed] has them.
	TIndptr Ptr // i64 [NumSrc+1]
	TDst    Ptr // i32 [edges]
	TEdge   Ptr // i32 [edges]
	// Turn, if not nil, is called before the host groups the edges by source because they are not there, so that later
	// blocks of the same sampler have them.
	Turn func()

	// Long are the chunks of destinations with more than kernels.LongRow in-edges, TLong those of
	// sources with more out-edges. The kernels of long rows are launched only for them, and not at
	// all if there are none.
	Long, TLong ChunkList

	// Rows are the block's source rows of the table RowsOf, if they were gathered: f32 [NumSrc,
	// columns of the table].
	Rows   Ptr
	RowsOf any

	// Ready is the event after which the arrays are written, or nil if they are. A stream must wait
	// for it before its first use of the arrays.
	Ready *Event
	// Release frees the memory in the way that its creator chose; nil does nothing. Reset calls it
	// once.
	Release func(*BlockArrays)
}

// ChunkList is a list of chunks of long rows on the device, ascending: i32 [N, 4], the members of Chunk in
// internal/cuda/kernels/long.cuh. Parts is the number of partial results, one for each chunk of a row of several chunks.
type ChunkList struct {
	Ptr      Ptr
	N, Parts int
}

// ChunkListAt returns the list at an address whose sizes the kernel long_rows has counted in a word.
func ChunkListAt(at Ptr, word int64) ChunkList {
	if word == 0 {
		return ChunkList{}
	}
	return ChunkList{Ptr: at, N: int(uint32(word)), Parts: int(word >> 32)}
}

// ArraysOf returns the block's arrays on a device, or nil if it has none.
func ArraysOf(b *graphops.Block) *BlockArrays {
	a, _ := b.Dev.(*BlockArrays)
	if a == nil || a.Indptr == 0 {
		return nil
	}
	return a
}

// Reset frees the arrays' memory and drops them. [graphops.Block.Reset] calls it.
func (a *BlockArrays) Reset() {
	release := a.Release
	if release != nil {
		release(a)
	}
	*a = BlockArrays{}
}

// HasTransposed reports whether the block has its transpose.
func (a *BlockArrays) HasTransposed() bool { return a.TIndptr != 0 }
