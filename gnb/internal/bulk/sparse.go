package bulk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// SparseBytes is the size of the answer to a request for sparse rows with that many elements in all.
func SparseBytes(rows int, elements int64, ones bool) int64 {
	if ones {
		return 8*int64(rows+1) + 4*elements
	}
	return 8*int64(rows+1) + 8*elements
}

// DecodeSparse sets m to rows of sparse features, cols columns wide, from the answer b: Indptr (int64),
// Indices (int32) and, unless each element is 1, Values (float32), in the memory of m's slices. It
// refuses what is no such matrix, and allocates no more than b has bytes.
func DecodeSparse(b []byte, rows, cols int, ones bool, m *dataset.Sparse) error {
	le := binary.LittleEndian
	head := 8 * (rows + 1)
	if len(b) < head {
		return fmt.Errorf("bulk: an answer of %d bytes has no %d rows", len(b), rows)
	}
	elements := le.Uint64(b[head-8:])
	if elements > uint64(len(b)) || SparseBytes(rows, int64(elements), ones) != int64(len(b)) {
		return fmt.Errorf("bulk: an answer announces %d elements of sparse rows, which are not what its %d bytes hold", elements, len(b))
	}
	m.Rows, m.Cols = rows, cols
	m.Indptr = resize(m.Indptr, rows+1)
	for i := range m.Indptr {
		m.Indptr[i] = int64(le.Uint64(b[8*i:]))
		if at := m.Indptr[i]; at < 0 || at > int64(elements) || i == 0 && at != 0 || i > 0 && at < m.Indptr[i-1] {
			return errors.New("bulk: the rows of an answer with sparse rows do not follow each other")
		}
	}
	b = b[head:]
	m.Indices = resize(m.Indices, int(elements))
	for i := range m.Indices {
		m.Indices[i] = int32(le.Uint32(b[4*i:]))
	}
	if m.Values = nil; !ones {
		b = b[4*elements:]
		m.Values = make([]float32, elements)
		for i := range m.Values {
			m.Values[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	}
	return m.Validate()
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
