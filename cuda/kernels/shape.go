package kernels

import "math/bits"

// Shape is the size of a launch: a one-dimensional grid of blocks of X·Y threads.
type Shape struct{ Grid, X, Y int }

// Threads is the most threads that a block of these kernels has.
const Threads = 256

// maxGrid is the most blocks of a launch, several times what a device runs at once:
// kernels stride by their grid, so more blocks would only cost more to start.
const maxGrid = 1 << 16

// blocks is the grid for items work items, each of a block.
func blocks(items int) int { return min(items, maxGrid) }

func ceil(n, by int) int { return (n + by - 1) / by }

// flat returns a grid of blocks of whole warps, in which a thread processes each items; small
// inputs get fewer threads.
func flat(n, each int) Shape {
	threads := min(Threads, max(32, ceil(n, 32*each)*32))
	return Shape{blocks(ceil(n, each*threads)), threads, 1}
}

// groups is a grid of blocks of whole warps for n groups of x lanes.
func groups(n, x int) Shape {
	y := Threads / x
	for y > 32/x && y/2 >= n {
		y /= 2
	}
	return Shape{blocks(ceil(n, y)), x, y}
}

// Items is the shape for n work items of a thread each; a Grid of 0, here and
// below, means that there is nothing to launch.
func Items(n int) Shape { return flat(n, 1) }

// Rounds is the shape of the elementwise kernels, for n elements.
func Rounds(n int) Shape { return flat(n, 4) }

// Width is how many lanes have a row of cols columns between them.
func Width(cols int) int {
	if cols <= 1 {
		return 1
	}
	return min(1<<bits.Len(uint(cols-1)), 32)
}

// Rows is the shape of kernels whose groups of lanes have a row of cols columns each.
func Rows(rows, cols int) Shape { return groups(rows, Width(cols)) }

// Tiled is the shape of kernels over rows of cols columns, which lanes take vector
// columns at a time: each tile of a row is a work item.
func Tiled(rows, cols, vector int) Shape {
	units := ceil(cols, vector)
	x := Width(units)
	return groups(rows*ceil(units, x), x)
}

// LongRow is the most edges of a row that the spmm kernels sum; the hub kernels have
// the longer ones.
const LongRow = 256

// LongRows is the most rows with more than LongRow edges that a graph of edges edges can have;
// long_rows lists them.
func LongRows(edges int64) int64 { return edges/(LongRow+1) + 1 }

// Hubs is the shape of the hub kernels, for long rows of cols columns.
func Hubs(long, cols int) Shape { return Columns(long, cols) }

// HubHeads is the shape of hub_edge_dot_f32, for long rows with heads of width columns each.
func HubHeads(long, heads, width int) Shape {
	x := Width(width)
	return Shape{blocks(long * heads), x, Threads / x}
}

// Columns is the shape of the sums of columns, over the given number of chunks of rows.
func Columns(chunks, cols int) Shape {
	x := Width(cols)
	return Shape{blocks(chunks * ceil(cols, x)), x, Threads / x}
}

// Losses is the shape of cross_entropy_f32, for the given number of chunks of rows.
func Losses(chunks, cols int) Shape {
	x := Width(cols)
	return Shape{blocks(chunks), x, Threads / x}
}

// Blocks is the shape for n work items of a whole block.
func Blocks(n int) Shape { return Shape{blocks(n), Threads, 1} }

// Warps is the shape of kernels whose warps have a row each.
func Warps(rows int) Shape { return groups(rows, 32) }

// Transpose is the shape of transpose_f32.
func Transpose(rows, cols int) Shape { return Shape{blocks(ceil(rows, 32) * ceil(cols, 32)), 32, 8} }

// Product is the shape of the gemm kernels, for an [m,n] result in the given number of chunks.
func Product(m, n, chunks int) Shape {
	const tile = 64
	return Shape{blocks(ceil(m, tile) * ceil(n, tile) * chunks), Threads, 1}
}

// SumChunk is the elements of a chunk of a sum. Each chunk has a sum of its own, so
// this is part of what sums round to, as are those below; they depend on sizes alone.
const SumChunk = 1 << 15

// RowChunk is the rows of a chunk of a sum over rows: at most 512 chunks, of at
// least 256 rows.
func RowChunk(rows int) int { return max(256, ceil(rows, 512)) }

// InnerChunk is the length of a chunk of a product's inner dimension, for an [m,n]
// result: the whole of it where the result's tiles are many, or the dimension short.
func InnerChunk(m, n, k int) int {
	const (
		enough   = 512 // work items that keep a device busy
		shortest = 512
	)
	tiles := max(ceil(m, 64)*ceil(n, 64), 1)
	chunks := min(ceil(enough, tiles), ceil(k, shortest))
	return max(ceil(k, max(chunks, 1)), 1)
}

// LossChunk is the rows of a chunk of the cross-entropy's sum.
const LossChunk = 256
