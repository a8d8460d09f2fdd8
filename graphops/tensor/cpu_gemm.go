package tensor

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Gonum's Sgemm starts goroutines of its own (as many as GOMAXPROCS, not
// cpu.threads) and changes its order of summation once the result has four tiles
// of 64×64 or more. So products are cut here into pieces below that size, which
// gonum computes on the calling goroutine, each row of the result alone: its
// bits depend neither on the threads nor on the other rows.
const (
	gemmRows = 64
	gemmCols = 3 * 64
	// gemmDepth is the length of a piece of an inner dimension that is cut:
	// 64 rows of gemmDepth stay in a 32 KiB L1 cache beside 64 of the other.
	gemmDepth = 64
)

func (c *cpu) Gemm(out Buffer, tA, tB bool, m, n, k int, a, b Buffer, acc bool) {
	gemm(c, out.Host, tA, tB, m, n, k, a.Host, b.Host, acc)
}

// gemm is the one place where matrix products are computed: out [m,n] = A·B, or
// += with acc; see [Backend] for the transpositions.
func gemm(c *cpu, out []float32, tA, tB bool, m, n, k int, a, b []float32, acc bool) {
	if m == 0 || n == 0 {
		return
	}
	if tA && !tB && k > 0 {
		gemmTN(c, out, m, n, k, a, b, acc)
		return
	}
	lda, ldb := k, n
	if tA {
		lda = m
	}
	if tB {
		ldb = k
	}
	parallel.For(c.threads, m, gemmRows, func(lo, hi int) {
		for col := 0; col < n; col += gemmCols {
			cols := min(gemmCols, n-col)
			for r := lo; r < hi && !acc; r++ {
				clear(out[r*n+col:][:cols])
			}
			for d := 0; d < k; d += gemmDepth {
				depth := min(gemmDepth, k-d)
				aAt, bAt := lo*lda+d, d*ldb+col
				if tA {
					aAt = d*lda + lo
				}
				if tB {
					bAt = col*ldb + d
				}
				piece(out[lo*n+col:], n, tA, tB, hi-lo, cols, depth, a[aAt:], lda, b[bAt:], ldb)
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
		for col := 0; col < n; col += gemmRows {
			cols := min(gemmRows, n-col)
			for d := chunk * grain; d < end; d += gemmDepth {
				depth := min(gemmDepth, end-d)
				piece(part[row*n+col:], n, true, false, rows, cols, depth, a[d*m+row:], m, b[d*n+col:], n)
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

// piece is out += A·B for a piece small enough for gonum to stay serial.
func piece(out []float32, ldc int, tA, tB bool, m, n, k int, a []float32, lda int, b []float32, ldb int) {
	gonum.Implementation{}.Sgemm(trans(tA), trans(tB), m, n, k, 1, a, lda, b, ldb, 1, out, ldc)
}

func trans(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}
