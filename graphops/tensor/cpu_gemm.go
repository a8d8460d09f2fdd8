package tensor

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Gonum's Sgemm starts goroutines of its own (as many as GOMAXPROCS, not
// cpu.threads) and changes its order of summation once the result has four tiles
// of 64×64 or more. So products are cut here into pieces of 64×128, which gonum
// computes on the calling goroutine, each row of the result alone: its bits
// depend neither on the threads nor on the other rows. A 64×128 piece of the
// right factor (32 KiB) stays in a first-level cache of 48 KiB beside a row.
const (
	gemmRows  = 64
	gemmCols  = 2 * 64
	gemmDepth = 64
)

func (c *cpu) Gemm(out Buffer, tA, tB bool, m, n, k int, a, b Buffer, acc bool) {
	gemm(c, out.Host, tA, tB, m, n, k, a.Host, b.Host, acc)
}

// gemm is the one place where matrix products are computed: out [m,n] = A·B, or
// += with acc; see [Backend] for the transpositions. A transposed right factor
// is laid out anew first, which costs k·n copies and saves gonum's slower paths.
func gemm(c *cpu, out []float32, tA, tB bool, m, n, k int, a, b []float32, acc bool) {
	if m == 0 || n == 0 {
		return
	}
	if tB {
		bT := c.borrow(k * n)
		defer c.giveBack(bT)
		c.transpose(bT, b, n, k)
		b = bT
	}
	if tA {
		gemmTN(c, out, m, n, k, a, b, acc)
		return
	}
	parallel.For(c.threads, m, gemmRows, func(lo, hi int) {
		if !acc {
			clear(out[lo*n : hi*n])
		}
		for col := 0; col < n; col += gemmCols {
			cols := min(gemmCols, n-col)
			for d := 0; d < k; d += gemmDepth {
				depth := min(gemmDepth, k-d)
				piece(out[lo*n+col:], n, false, hi-lo, cols, depth, a[lo*k+d:], k, b[d*n+col:], n)
			}
		}
	})
}

// transpose is out [cols,rows] = xᵀ of x [rows,cols].
func (c *cpu) transpose(out, x []float32, rows, cols int) {
	const tile = 32
	parallel.For(c.threads, cols, tile, func(lo, hi int) {
		for top := 0; top < rows; top += tile {
			for j := lo; j < hi; j++ {
				o := out[j*rows:][:rows]
				for i := top; i < min(top+tile, rows); i++ {
					o[i] = x[i*cols+j]
				}
			}
		}
	})
}

// gemmTN is out [m,n] = aᵀ·b with a [k,m], b [k,n]: the weight gradient, whose
// inner dimension is the rows of the batch. Chunks of k, cut by k alone, have
// each a result of their own, and these are summed as a pairwise tree.
func gemmTN(c *cpu, out []float32, m, n, k int, a, b []float32, acc bool) {
	grain := gemmChunk(k)
	chunks := parallel.Chunks(k, grain)
	tilesM := parallel.Chunks(m, gemmRows)
	parts := c.borrow(chunks * m * n)
	defer c.giveBack(parts)
	parallel.For(c.threads, chunks*tilesM, 1, func(item, _ int) {
		chunk, row := item/tilesM, item%tilesM*gemmRows
		rows := min(gemmRows, m-row)
		part := parts[chunk*m*n:][:m*n]
		clear(part[row*n : (row+rows)*n])
		end := min((chunk+1)*grain, k)
		for col := 0; col < n; col += gemmCols {
			cols := min(gemmCols, n-col)
			for d := chunk * grain; d < end; d += gemmDepth {
				depth := min(gemmDepth, end-d)
				piece(part[row*n+col:], n, true, rows, cols, depth, a[d*m+row:], m, b[d*n+col:], n)
			}
		}
	})
	c.treeSum(out, parts, m*n, acc)
}

// gemmChunk is the rows of a chunk of the long sum: 1024, or so many that there
// are 32 chunks, a multiple of gemmDepth.
func gemmChunk(k int) int {
	return max(1024, ((k+31)/32+gemmDepth-1)/gemmDepth*gemmDepth)
}

// piece is out += A·B, or aᵀ·B with tA, small enough for gonum to stay serial.
func piece(out []float32, ldc int, tA bool, m, n, k int, a []float32, lda int, b []float32, ldb int) {
	t := blas.NoTrans
	if tA {
		t = blas.Trans
	}
	gonum.Implementation{}.Sgemm(t, blas.NoTrans, m, n, k, 1, a, lda, b, ldb, 1, out, ldc)
}
