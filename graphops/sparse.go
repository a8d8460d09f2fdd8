package graphops

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Sparse is a [Rows, Cols] matrix of float32 in compressed rows: the elements of
// row i that are not zero are Values[Indptr[i]:Indptr[i+1]] in the columns
// Indices[Indptr[i]:Indptr[i+1]], ascending. It suits features that are mostly
// zero, such as bags of words.
type Sparse struct {
	Rows, Cols int
	Indptr     []int64   // [Rows+1], ascending, Indptr[0] = 0
	Indices    []int32   // [elements]
	Values     []float32 // [elements], or nil if each is 1
}

// Row returns the columns and values of row i, in the matrix's own memory; values is nil if each is
// 1.
func (s *Sparse) Row(i int) (cols []int32, values []float32) {
	lo, hi := s.Indptr[i], s.Indptr[i+1]
	if s.Values != nil {
		values = s.Values[lo:hi:hi]
	}
	return s.Indices[lo:hi:hi], values
}

// Gather copies the rows ids, in their order, into dst, on the given number of threads (0:
// GOMAXPROCS). It reuses the memory of dst's slices if they are large enough. dst's Values are nil
// if those of s are. It panics on an id outside the matrix. Cost: one pass over the rows.
func (s *Sparse) Gather(ids []int32, dst *Sparse, threads int) {
	n := len(ids)
	dst.Rows, dst.Cols = n, s.Cols
	dst.Indptr = room(dst.Indptr, n+1)
	dst.Indptr[0] = 0
	for i, v := range ids {
		dst.Indptr[i+1] = dst.Indptr[i] + s.Indptr[v+1] - s.Indptr[v]
	}
	elements := int(dst.Indptr[n])
	dst.Indices = room(dst.Indices, elements)
	if s.Values == nil {
		dst.Values = nil
	} else {
		dst.Values = room(dst.Values, elements)
		if dst.Values == nil { // no elements, yet not "each is 1"
			dst.Values = []float32{}
		}
	}
	const grain = 256
	parallel.For(threads, n, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			cols, values := s.Row(int(ids[i]))
			copy(dst.Indices[dst.Indptr[i]:], cols)
			if values != nil {
				copy(dst.Values[dst.Indptr[i]:], values)
			}
		}
	})
}

// Dense returns the matrix with its zeros, row-major: [Rows·Cols], a new slice.
func (s *Sparse) Dense() []float32 {
	x := make([]float32, s.Rows*s.Cols)
	parallel.For(0, s.Rows, max(1, 1<<14/max(1, s.Cols)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*s.Cols : (i+1)*s.Cols]
			cols, values := s.Row(i)
			for k, c := range cols {
				if values == nil {
					row[c] = 1
				} else {
					row[c] = values[k]
				}
			}
		}
	})
	return x
}

// Validate checks the invariants of the type and that the values are finite. The error, a
// [*SparseError], names the first violation. Cost: one pass over the elements.
func (s *Sparse) Validate() error { return s.ValidateRange(0, s.Rows) }

// ValidateRange is [Sparse.Validate] for the rows [from, to) alone, and [Sparse.CheckShape].
func (s *Sparse) ValidateRange(from, to int) error {
	if err := s.CheckShape(); err != nil {
		return err
	}
	bad := make([]error, parallel.Chunks(to-from, sparseGrain))
	parallel.For(0, to-from, sparseGrain, func(lo, hi int) {
		for i := from + lo; i < from+hi && bad[lo/sparseGrain] == nil; i++ {
			bad[lo/sparseGrain] = s.validateRow(i)
		}
	})
	return firstError(bad)
}

// SparseError describes where a sparse matrix violates an invariant.
type SparseError struct {
	Array string // "Indptr", "Indices" or "Values"
	Index int64  // -1: the array as a whole
	Why   string
}

func (e *SparseError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("graphops: invalid sparse matrix: %s: %s", e.Array, e.Why)
	}
	return fmt.Sprintf("graphops: invalid sparse matrix: %s[%d]: %s", e.Array, e.Index, e.Why)
}

// CheckShape returns an error, a [*SparseError], unless the sizes and the first and last entries of
// Indptr fit together. It reads no elements.
func (s *Sparse) CheckShape() error {
	bad := func(array string, index int64, format string, args ...any) error {
		return &SparseError{Array: array, Index: index, Why: fmt.Sprintf(format, args...)}
	}
	elements := int64(len(s.Indices))
	switch {
	case s.Rows < 0 || s.Cols < 0 || s.Cols > math.MaxInt32:
		return bad("Indptr", -1, "the shape is [%d, %d]; columns are int32", s.Rows, s.Cols)
	case len(s.Indptr) != s.Rows+1:
		return bad("Indptr", -1, "it has %d entries for %d rows", len(s.Indptr), s.Rows)
	case s.Indptr[0] != 0 || s.Indptr[s.Rows] != elements:
		return bad("Indptr", -1, "it runs from %d to %d, but there are %d elements", s.Indptr[0], s.Indptr[s.Rows], elements)
	case s.Values != nil && int64(len(s.Values)) != elements:
		return bad("Values", -1, "there are %d values for %d elements", len(s.Values), elements)
	}
	return nil
}

// sparseGrain is the number of rows per chunk.
const sparseGrain = 1 << 10

func (s *Sparse) validateRow(i int) error {
	first, last := s.Indptr[i], s.Indptr[i+1]
	if last < first || first < 0 || last > int64(len(s.Indices)) {
		return &SparseError{"Indptr", int64(i) + 1, fmt.Sprintf("row %d has the elements %d to %d of %d", i, first, last, len(s.Indices))}
	}
	for e := first; e < last; e++ {
		c := s.Indices[e]
		if c < 0 || int(c) >= s.Cols {
			return &SparseError{"Indices", e, fmt.Sprintf("column %d in row %d is out of range; the columns are 0 to %d", c, i, s.Cols-1)}
		}
		if e > first && c <= s.Indices[e-1] {
			return &SparseError{"Indices", e, fmt.Sprintf("the columns of row %d do not ascend: %d follows %d", i, c, s.Indices[e-1])}
		}
		if s.Values != nil && !isFinite(s.Values[e]) {
			return &SparseError{"Values", e, fmt.Sprintf("%v in row %d; values must be finite", s.Values[e], i)}
		}
	}
	return nil
}

// isFinite reports whether x is neither infinite nor NaN.
func isFinite(x float32) bool {
	const exponent = 0x7f800000 // set completely only in infinities and NaNs
	return math.Float32bits(x)&exponent != exponent
}
