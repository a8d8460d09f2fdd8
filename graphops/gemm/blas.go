package gemm

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BLAS is gonum's implementation with this package's Sgemm:
// blas32.Use(gemm.BLAS{}).
type BLAS struct {
	gonum.Implementation
	// Threads is how many goroutines compute at a time, 0: GOMAXPROCS.
	Threads int
}

// Sgemm is C = alpha·op(A)·op(B) + beta·C, with gonum's checks and panics. With
// beta 0, C's content is not read; with alpha 0, neither are A and B.
func (b BLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, bb []float32, ldb int, beta float32, c []float32, ldc int) {
	// With alpha 0 and beta 1 gonum only checks.
	b.Implementation.Sgemm(tA, tB, m, n, k, 0, a, lda, bb, ldb, 1, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	if beta != 0 && beta != 1 {
		for i := range m {
			row := c[i*ldc : i*ldc+n]
			for j := range row {
				row[j] *= beta
			}
		}
	}
	if alpha == 0 {
		k = 0
	}
	terms := [1]Term{{
		K: k,
		A: Operand{Data: a, Stride: lda, Trans: tA != blas.NoTrans},
		B: Operand{Data: bb, Stride: ldb, Trans: tB != blas.NoTrans},
	}}
	multiply(active.Load(), m, n, c, ldc, terms[:], Options{Threads: b.Threads, Acc: beta != 0}, alpha)
}
