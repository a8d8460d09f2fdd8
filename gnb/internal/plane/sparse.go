package plane

import (
	"fmt"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// SparseBook is the sparse features of some parts of a divided dataset. It implements [Own]: a row is the number of its
// elements, their columns, and their values if not all are 1, in words of four bytes, with room for the longest row of all
// parts. So windows and caches need not know that rows are sparse; between ranks rows travel in their true lengths.
type SparseBook struct {
	Book
	longest int // elements of the longest row of all parts
	ones    bool
}

// NewSparseBook returns the features, which must be sparse, of the parts for which here is set; they are on this machine.
// Longest is the number of elements of the longest row of all parts, the same on all ranks. Threads (0: GOMAXPROCS) copy rows.
func NewSparseBook(b *divided.Book, here []bool, longest, threads int) *SparseBook {
	return &SparseBook{*NewBook(b, here, threads), longest, b.Dataset().Meta.FeatureFormat == dataset.FormatCSROnes}
}

// words is the size of a row.
func (o *SparseBook) words() int {
	if o.ones {
		return 1 + o.longest
	}
	return 1 + 2*o.longest
}

// RowBytes is the size of a row.
func (o *SparseBook) RowBytes() int { return 4 * o.words() }

// Gather implements [Own]. The memory of dst must be aligned to four bytes.
func (o *SparseBook) Gather(dst []byte, ids []int32) error {
	if len(dst) == 0 {
		return nil
	}
	size := o.words()
	to := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)
	return o.b.VisitSparse(ids, o.threads, func(i int, cols []int32, values []float32) {
		row := to[i*size : (i+1)*size]
		n := min(len(cols), o.longest) // a longer one is reported when it is read
		row[0] = int32(len(cols))
		copy(row[1:], cols[:n])
		if !o.ones && n > 0 {
			copy(unsafe.Slice((*float32)(unsafe.Pointer(&row[1+o.longest])), n), values[:n])
		}
	})
}

// checkLength returns an error if no row has n elements.
func (o *SparseBook) checkLength(n int) error {
	if n < 0 || n > o.longest {
		return fmt.Errorf("a row of features has %d elements, and the longest one has %d; all ranks must have the same division of the dataset", n, o.longest)
	}
	return nil
}

// Reset gives m the memory of rows rows, with any content, and returns their bytes.
func (o *SparseBook) Reset(m *dataset.Matrix, rows int) []byte {
	return Reset(m, rows, o.words(), false)
}

// Decode sets dst to the features of rows, as Gather has written them, in the memory of dst's slices.
func (o *SparseBook) Decode(dst *dataset.Sparse, rows []byte) error {
	size, cols := o.words(), o.b.Dataset().FeatureDim()
	n := len(rows) / (4 * size)
	dst.Rows, dst.Cols, dst.Indptr = n, cols, append(resize(dst.Indptr, n+1)[:0], 0)
	dst.Indices = dst.Indices[:0]
	if dst.Values = dst.Values[:0]; o.ones {
		dst.Values = nil
	} else if dst.Values == nil {
		dst.Values = []float32{}
	}
	if n == 0 {
		return nil
	}
	words := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(rows))), n*size)
	for ; len(words) > 0; words = words[size:] {
		k := int(words[0])
		if err := o.checkLength(k); err != nil {
			return err
		}
		for _, c := range words[1 : 1+k] {
			if c < 0 || int(c) >= cols {
				return fmt.Errorf("a row of features has column %d, and there are %d; all ranks must have the same division of the dataset", c, cols)
			}
		}
		dst.Indices = append(dst.Indices, words[1:1+k]...)
		if !o.ones && k > 0 {
			dst.Values = append(dst.Values, unsafe.Slice((*float32)(unsafe.Pointer(&words[1+o.longest])), k)...)
		}
		dst.Indptr = append(dst.Indptr, int64(len(dst.Indices)))
	}
	return nil
}
