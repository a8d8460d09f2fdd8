// Package gemm multiplies float32 matrices in host memory.
//
// [Multiply] computes C = Σ A·B over one or more terms. Either factor may be stored transposed or
// gathered by an index. Options add a bias, and hooks that process rows of A and C while they are
// in a core's cache.
package gemm

import (
	"fmt"
	"sync/atomic"
)

// active is the path in use: by default the fastest that this processor can run. Tests change it.
var active = func() (a atomic.Pointer[path]) {
	a.Store(paths[0])
	return
}()

// Operand is a matrix in memory, row-major: row i of the stored matrix begins at Data[i*Stride], or
// at Data[Index[i]*Stride] with an Index (a gather). Trans means that the stored matrix is the
// transpose of the factor. Operands are not modified.
type Operand struct {
	Data   []float32
	Stride int
	Trans  bool
	Index  []int32
}

// Term is one product A·B: A is [m,K] (stored [K,m] with Trans), B is [K,n]
// (stored [n,K] with Trans).
type Term struct {
	K    int
	A, B Operand
}

// Options holds optional settings of [Multiply].
type Options struct {
	// Threads is the number of goroutines that compute in parallel; 0 means GOMAXPROCS.
	Threads int
	// Acc adds to C. Without it, C is overwritten, whatever it contained (even NaN).
	Acc bool
	// Bias [n] is added to each row of C once; nil: none.
	Bias []float32
	// BF16 rounds both factors of each product to bfloat16 (nearest, ties to even) and sums the
	// products in float32. It is faster on processors with bfloat16 instructions. See [BF16].
	BF16 bool
	// Before is called once for each range of rows of the first term's stored A (of its Index, if
	// it has one), before they are read. After is called once for each range of rows of C when they
	// are final, usually on the goroutine that computed them, while they are in its cache. The
	// ranges partition the rows and depend on the shapes and the processor's caches, except for
	// those of [SumRows]. Calls may run concurrently.
	Before, After func(lo, hi int)
}

// Multiply computes C [m,n] = Σ A·B over the terms, plus the bias; row i of C begins at c[i*ldc],
// and C must not overlap an operand.
//
// The bits of the result depend neither on the number of threads nor on the processor's caches,
// which determine how the work is split. Multiply is safe for concurrent use. Cost: 2·m·n·K flops
// per term. It panics if an operand is too short for the shapes.
func Multiply(m, n int, c []float32, ldc int, terms []Term, o Options) {
	check(m, n, c, ldc, terms, o)
	p := active.Load()
	if o.BF16 {
		p = pathBF16()
	}
	multiply(p, m, n, c, ldc, terms, o)
}

// SumRows returns the length of the row ranges passed to [Options.Before] for C [m,n] = Aᵀ·B with A
// stored as [k,m], if the sum over k is split into chunks; the last range may be shorter. It
// returns 0 if C is split instead.
func SumRows(m, n, k int) int {
	if m == 0 || n == 0 || m*n > maxPartial || k < 2*minChunk {
		return 0
	}
	// An even number of chunks suits an even number of threads.
	chunks := min(maxChunks, max(2*((k+2047)/2048), min(4, k/minChunk)))
	return (k + chunks - 1) / chunks
}

func check(m, n int, c []float32, ldc int, terms []Term, o Options) {
	if m < 0 || n < 0 {
		panic(fmt.Sprintf("gemm: the result is [%d,%d]; no size may be negative", m, n))
	}
	if m > 0 && n > 0 && !holds(len(c), m, n, ldc) {
		panic(fmt.Sprintf("gemm: C is [%d,%d] with stride %d, but has %d elements", m, n, ldc, len(c)))
	}
	if o.Bias != nil && len(o.Bias) != n {
		panic(fmt.Sprintf("gemm: the bias has %d elements for %d columns", len(o.Bias), n))
	}
	for i := range terms {
		t := &terms[i]
		t.A.check("A", m, t.K)
		t.B.check("B", t.K, n)
	}
}

// check panics if the operand has fewer than the factor's rows × cols elements. The values of an
// index are not checked: reading a row out of range panics or faults.
func (o *Operand) check(name string, rows, cols int) {
	if o.Trans {
		rows, cols = cols, rows
	}
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("gemm: %s is [%d,%d]; no size may be negative", name, rows, cols))
	}
	if rows == 0 || cols == 0 {
		return
	}
	have := rows
	if o.Index != nil {
		if len(o.Index) < rows {
			panic(fmt.Sprintf("gemm: %s needs %d rows, but its index has %d", name, rows, len(o.Index)))
		}
		have = 1
	}
	if !holds(len(o.Data), have, cols, o.Stride) {
		panic(fmt.Sprintf("gemm: %s is stored [%d,%d] with stride %d, but has %d elements", name, rows, cols, o.Stride, len(o.Data)))
	}
}

// holds reports whether a matrix of rows × cols, both above 0, fits into that many elements. It
// divides, because the product with a huge stride would overflow.
func holds(elements, rows, cols, stride int) bool {
	return stride >= cols && elements >= cols && (elements-cols)/stride >= rows-1
}
