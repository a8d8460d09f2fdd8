// Package devblock holds the arrays of a [graphops.Block] in a device's memory, the value of
// Block.Dev. For a block made on the host, the device's backend creates them at first use; for a
// block sampled on the device, package internal/cuda/sampler does. The package that created them owns the
// memory.
package devblock

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/cuda"
)

// Arrays are a block's arrays, laid out and numbered as the block's slices are. A
// pointer is 0 where the block has no such slice (EdgePos, SrcIDs, Weights) or it
// was not put there (the transpose).
type Arrays struct {
	// First is Indptr[0].
	First   int64
	Indptr  cuda.Ptr // i64 [NumDst+1]
	Indices cuda.Ptr // i32 [edges]
	EdgePos cuda.Ptr // i64 [edges]
	SrcIDs  cuda.Ptr // i32 [NumSrc]
	Weights cuda.Ptr // f32 [edges]

	// The block's edges grouped by source, as [graphops.Transposed] has them.
	TIndptr cuda.Ptr // i64 [NumSrc+1]
	TDst    cuda.Ptr // i32 [edges]
	TEdge   cuda.Ptr // i32 [edges]
	// Turn, if not nil, is called before the host groups the edges by source because they are not there, so that later
	// blocks of the same sampler have them.
	Turn func()

	// Long are the chunks of destinations with more than kernels.LongRow in-edges, TLong those of
	// sources with more out-edges. The kernels of long rows are launched only for them, and not at
	// all if there are none.
	Long, TLong List

	// Rows are the block's source rows of the table RowsOf, if they were gathered: f32 [NumSrc,
	// columns of the table].
	Rows   cuda.Ptr
	RowsOf any

	// Ready is the event after which the arrays are written, or nil if they are. A stream must wait
	// for it before its first use of the arrays.
	Ready *cuda.Event
	// Release frees the memory in the way that its creator chose; nil does nothing. Reset calls it
	// once.
	Release func(*Arrays)
}

// List is a list of chunks of long rows on the device, ascending: i32 [N, 4], the members of Chunk in
// internal/cuda/kernels/long.cuh. Parts is the number of partial results, one for each chunk of a row of several chunks.
type List struct {
	Ptr      cuda.Ptr
	N, Parts int
}

// ListAt returns the list at an address whose sizes the kernel long_rows has counted in a word.
func ListAt(at cuda.Ptr, word int64) List {
	if word == 0 {
		return List{}
	}
	return List{Ptr: at, N: int(uint32(word)), Parts: int(word >> 32)}
}

// Of returns the block's arrays on a device, or nil if it has none.
func Of(b *graphops.Block) *Arrays {
	a, _ := b.Dev.(*Arrays)
	if a == nil || a.Indptr == 0 {
		return nil
	}
	return a
}

// Reset frees the arrays' memory and drops them. [graphops.Block.Reset] calls it.
func (a *Arrays) Reset() {
	release := a.Release
	if release != nil {
		release(a)
	}
	*a = Arrays{}
}

// HasTransposed reports whether the block has its transpose.
func (a *Arrays) HasTransposed() bool { return a.TIndptr != 0 }
