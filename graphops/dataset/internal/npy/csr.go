// This file reads sparse matrices in compressed sparse row format from untrusted arrays.

package npy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Matrix is a matrix in the layout of SciPy's csr_matrix, not yet checked. Data may be nil: every
// value is 1.
type Matrix struct {
	Rows, Cols            int64
	Indptr, Indices, Data *Array
}

// emptyCols is the number of columns that a matrix may have beyond 64 per element; a larger claimed
// shape would only cost memory later.
const emptyCols = 1 << 16

// Check reads the whole matrix in constant memory and returns the first error: a part that is not a
// list of numbers, row bounds that do not begin at 0, ascend and end with the last element, columns
// outside the matrix, values that are not finite. Columns may be unsorted and repeated.
func (m *Matrix) Check() error {
	if err := m.Indptr.Is(1, true); err != nil {
		return err
	}
	if err := m.Indices.Is(1, true); err != nil {
		return err
	}
	elements := m.Indices.Len()
	if m.Data != nil {
		if err := m.Data.Is(1, false); err != nil {
			return err
		}
		if n := m.Data.Len(); n != elements {
			return fmt.Errorf("%s has %d elements and %s has %d; the numbers must be equal", m.Indices.Name, elements, m.Data.Name, n)
		}
	}
	switch {
	case m.Rows < 0 || m.Rows > math.MaxInt32 || m.Cols < 0 || m.Cols > math.MaxInt32:
		return fmt.Errorf("the shape is [%d, %d]; rows and columns are numbered by int32", m.Rows, m.Cols)
	case m.Indptr.Len() != m.Rows+1:
		return fmt.Errorf("%s has %d elements; %d rows need %d", m.Indptr.Name, m.Indptr.Len(), m.Rows, m.Rows+1)
	case m.Cols-emptyCols > 64*elements:
		return fmt.Errorf("the shape is [%d, %d], but there are only %d elements: the shape must be wrong", m.Rows, m.Cols, elements)
	}
	last := int64(0)
	err := m.Indptr.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x < last || x > elements || at+int64(i) == 0 && x != 0 {
				return fmt.Errorf("entry %d of %s is %d after %d; it must ascend from 0 to the %d elements", at+int64(i), m.Indptr.Name, x, last, elements)
			}
			last = x
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last != elements {
		return fmt.Errorf("%s ends with %d, but %s has %d elements", m.Indptr.Name, last, m.Indices.Name, elements)
	}
	err = m.Indices.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x < 0 || x >= m.Cols {
				return fmt.Errorf("entry %d of %s is %d; the columns are 0 to %d", at+int64(i), m.Indices.Name, x, m.Cols-1)
			}
		}
		return nil
	})
	if err != nil || m.Data == nil {
		return err
	}
	return m.Data.EachFloat(func(at int64, xs []float32) error {
		for i, x := range xs {
			if x-x != 0 { // infinite or NaN
				return fmt.Errorf("entry %d of %s is %v; values must be finite", at+int64(i), m.Data.Name, x)
			}
		}
		return nil
	})
}

// Load reads a matrix that has passed Check: row i is indices[indptr[i]:indptr[i+1]], ascending,
// with the values at the same positions. Repeated elements are added and zeros left out, as in a
// dense copy of the matrix. values is nil if every value is 1.
func (m *Matrix) Load() (indptr []int64, indices []int32, values []float32, err error) {
	indptr, indices = make([]int64, m.Rows+1), make([]int32, m.Indices.Len())
	err = m.Indptr.EachInt(func(at int64, xs []int64) error { copy(indptr[at:], xs); return nil })
	if err == nil {
		err = m.Indices.EachInt(func(at int64, xs []int64) error {
			for i, x := range xs {
				indices[at+int64(i)] = int32(x)
			}
			return nil
		})
	}
	if err == nil && m.Data != nil {
		values, err = m.loadValues()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	// If the file changes between Check and Load, the program must not crash.
	for i := range m.Rows {
		if indptr[i] < 0 || indptr[i] > indptr[i+1] || indptr[i+1] > int64(len(indices)) {
			return nil, nil, nil, fmt.Errorf("%s changed while it was read", m.Indptr.Name)
		}
	}
	indices, values = tidy(indptr, indices, values)
	return indptr, indices, values, nil
}

// loadValues returns nil if every value is 1.
func (m *Matrix) loadValues() (values []float32, err error) {
	err = m.Data.EachFloat(func(at int64, xs []float32) error {
		for i, x := range xs {
			if values == nil && x != 1 {
				values = make([]float32, m.Data.Len())
				for k := range at + int64(i) {
					values[k] = 1
				}
			}
			if values != nil {
				values[at+int64(i)] = x
			}
		}
		return nil
	})
	return values, err
}

type element struct {
	col   int32
	value float32
}

// tidy sorts the rows, adds repeated elements and drops zeros, in place.
func tidy(indptr []int64, indices []int32, values []float32) ([]int32, []float32) {
	var row []element
	kept := int64(0)
	lo := indptr[0]
	for i := range len(indptr) - 1 {
		hi := indptr[i+1]
		row = row[:0]
		sorted := true
		for e := lo; e < hi; e++ {
			x := element{indices[e], 1}
			if values != nil {
				x.value = values[e]
			}
			sorted = sorted && (e == lo || x.col > indices[e-1])
			row = append(row, x)
		}
		if !sorted {
			slices.SortStableFunc(row, func(a, b element) int { return cmp.Compare(a.col, b.col) })
			row, values = merge(row, values, len(indices))
		}
		for _, x := range row {
			if x.value == 0 {
				continue
			}
			indices[kept] = x.col
			if values != nil {
				values[kept] = x.value
			}
			kept++
		}
		lo, indptr[i+1] = hi, kept
	}
	indices = indices[:kept:kept]
	if values != nil {
		if values = values[:kept:kept]; !slices.ContainsFunc(values, func(x float32) bool { return x != 1 }) {
			values = nil
		}
	}
	return indices, values
}

// merge adds adjacent elements of the same column. If the sum is the first value other than 1,
// merge first fills values with one 1 per element.
func merge(row []element, values []float32, total int) ([]element, []float32) {
	out := row[:0]
	for _, x := range row {
		if n := len(out); n > 0 && out[n-1].col == x.col {
			out[n-1].value += x.value
			if values == nil {
				values = make([]float32, total)
				for k := range total {
					values[k] = 1
				}
			}
			continue
		}
		out = append(out, x)
	}
	return out, values
}
