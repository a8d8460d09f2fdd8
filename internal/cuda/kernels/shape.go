package kernels

import (
	"math/bits"

	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// Shape is the size of a launch: a one-dimensional grid of blocks of X·Y threads each.
type Shape struct{ Grid, X, Y int }

// Threads is the largest number of threads per block in these kernels.
const Threads = 256

// maxGrid is the largest number of blocks per launch, several times what a device runs at once. Kernels
// stride by their grid, so more blocks would only take longer to start.
const maxGrid = 1 << 16

// blocks returns the number of blocks for items work items of one block each.
func blocks(items int) int { return min(items, maxGrid) }

func ceil(n, by int) int { return (n + by - 1) / by }

// flat returns a grid of blocks of whole warps, in which a thread processes each items; small
// inputs get fewer threads.
func flat(n, each int) Shape {
	threads := min(Threads, max(32, ceil(n, 32*each)*32))
	return Shape{blocks(ceil(n, each*threads)), threads, 1}
}

// groups returns a grid of blocks of whole warps for n groups of x lanes.
func groups(n, x int) Shape {
	y := Threads / x
	for y > 32/x && y/2 >= n {
		y /= 2
	}
	return Shape{blocks(ceil(n, y)), x, y}
}

// Items returns the shape for n work items of one thread each. A Grid of 0, here and below, means that
// there is nothing to launch.
func Items(n int) Shape { return flat(n, 1) }

// Rounds returns the shape of the elementwise kernels for n elements.
func Rounds(n int) Shape { return flat(n, 4) }

// Width returns the number of lanes that share a row of cols columns.
func Width(cols int) int {
	if cols <= 1 {
		return 1
	}
	return min(1<<bits.Len(uint(cols-1)), 32)
}

// Rows returns the shape of kernels in which each group of lanes processes a row of cols columns.
func Rows(rows, cols int) Shape { return groups(rows, Width(cols)) }

// heldWidth returns the number of lanes that hold a row of cols columns in registers, eight columns a lane.
func heldWidth(cols int) int { return Width(ceil(cols, 8)) }

// Held returns the shape of the kernels of held.cuh.
func Held(rows, cols int) Shape { return groups(rows, heldWidth(cols)) }

// Tiled returns the shape of kernels over rows of cols columns of which a lane processes vector columns at
// a time: each tile of a row is a work item.
func Tiled(rows, cols, vector int) Shape {
	units := ceil(cols, vector)
	x := Width(units)
	return groups(rows*ceil(units, x), x)
}

// GatheredItems is the number of items of [Tiled] that a group of lanes of the gather kernels processes at a time.
const GatheredItems = 4

// Gathered returns the shape of the gather kernels.
func Gathered(rows, cols, vector int) Shape {
	units := ceil(cols, vector)
	x := Width(units)
	return groups(ceil(rows*ceil(units, x), GatheredItems), x)
}

// LongRow is the largest number of edges in a row that the spmm kernels sum; the hub kernels sum longer rows.
const LongRow = sizes.LongRow

// Chunks returns the chunks of the rows of more than LongRow edges, as the kernel long_rows lists them: four numbers
// each, those of Chunk in long.cuh. parts is the number of partial results.
func Chunks(indptr []int64) (list []int32, parts int) {
	for r := range len(indptr) - 1 {
		of := int(sizes.Chunks(indptr[r+1] - indptr[r]))
		for number := range of {
			list = append(list, int32(r), int32(number), int32(of), int32(parts))
			if of > 1 {
				parts++
			}
		}
	}
	return list, parts
}

// Hubs returns the shape of the kernels for chunks of long rows of cols columns.
func Hubs(chunks, cols int) Shape { return Columns(chunks, cols) }

// HubSums returns the shape of the kernels of hub.cu, of which a lane processes vector columns at a time. The number of
// groups, and so the order of a sum, is the same for any vector.
func HubSums(chunks, cols, vector int) Shape {
	x := Width(cols)
	if cols%4 == 0 {
		x = Width(cols / 4)
	}
	return Shape{blocks(chunks * ceil(cols, vector*x)), x, Threads / x}
}

// HubHeads returns the shape of hub_edge_dot_f32 for chunks of rows with heads of width columns each.
func HubHeads(chunks, heads, width int) Shape {
	x := Width(width)
	return Shape{blocks(chunks * heads), x, Threads / x}
}

// Total returns the shape of col_dot_f32 for a single chunk of rows. Its blocks are narrow if there are many rows,
// so that more blocks and more lanes per column share them.
func Total(rows, cols int) Shape {
	x := Width(cols)
	for x > 8 && rows*x >= 16*Threads {
		x /= 2
	}
	return Shape{blocks(ceil(cols, x)), x, Threads / x}
}

// Columns returns the shape of col_dot_f32 for several chunks of rows.
func Columns(chunks, cols int) Shape {
	x := Width(cols)
	return Shape{blocks(chunks * ceil(cols, x)), x, Threads / x}
}

// Losses returns the shape of cross_entropy_f32 for the given number of chunks of rows.
func Losses(chunks, cols int) Shape {
	x := heldWidth(cols)
	return Shape{blocks(chunks), x, Threads / x}
}

// Blocks returns the shape for n work items of one block each.
func Blocks(n int) Shape { return Shape{blocks(n), Threads, 1} }

// Warps returns the shape of kernels in which each warp processes one row.
func Warps(rows int) Shape { return groups(rows, 32) }

// Transpose returns the shape of transpose_f32.
func Transpose(rows, cols int) Shape { return Shape{blocks(ceil(rows, 64) * ceil(cols, 32)), 32, 8} }

// Product returns the shape of the gemm kernels for an [m,n] result in the given number of chunks.
func Product(m, n, chunks int) Shape {
	const tile = 64
	return Shape{blocks(ceil(m, tile) * ceil(n, tile) * chunks), Threads, 1}
}

// SumChunk is the number of elements per chunk of a sum. Each chunk is summed separately, so this number,
// like those below, affects how sums round. They depend on sizes alone.
const SumChunk = 1 << 15

// RowChunk returns the number of rows per chunk of a sum over rows: all of up to 1024 rows, which then take a single
// launch; otherwise at least 256, and so many that there are at most 512 chunks.
func RowChunk(rows int) int {
	if rows <= 1024 {
		return max(rows, 1)
	}
	return max(256, ceil(rows, 512))
}

// InnerChunk returns the length of the chunks into which a product's inner dimension is divided, for an
// [m,n] result. If the result has many tiles or the dimension is short, one chunk is the whole dimension.
func InnerChunk(m, n, k int) int {
	const (
		enough   = 512 // work items that keep a device busy
		shortest = 512
	)
	tiles := max(ceil(m, 64)*ceil(n, 64), 1)
	chunks := min(ceil(enough, tiles), ceil(k, shortest))
	return max(ceil(k, max(chunks, 1)), 1)
}

// LossChunk returns the number of rows per chunk of the cross-entropy's sum: at least 32, so that the rows
// of a small batch have many blocks, and so many that there are at most 4096 chunks.
func LossChunk(rows int) int { return max(32, ceil(rows, 4096)) }
