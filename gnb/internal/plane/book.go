package plane

import (
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// Book is the features of some parts of a divided dataset: dense ones, unless a [SparseBook] reads them. It implements [Own].
type Book struct {
	b       *divided.Book
	of      []int32
	here    []bool
	threads int
}

// NewBook returns the features, which must be dense, of the parts for which here is set; they are on this machine.
// Threads (0: GOMAXPROCS) copy rows.
func NewBook(b *divided.Book, here []bool, threads int) *Book {
	return &Book{b, b.Of(), here, threads}
}

// RowBytes is the size of a node's features.
func (o *Book) RowBytes() int { return RowBytes(o.b.Dataset().FeatureDim(), o.b.Half()) }

// RowBytes is the size of a row of float16 (half) or float32.
func RowBytes(cols int, half bool) int {
	if half {
		return 2 * cols
	}
	return 4 * cols
}

// Has implements [Own].
func (o *Book) Has(v int32) bool { return uint(v) < uint(len(o.of)) && o.here[o.of[v]] }

// Gather implements [Own]. The memory of dst must be aligned for the stored type.
func (o *Book) Gather(dst []byte, ids []int32) error {
	if len(dst) == 0 {
		return nil
	}
	var m dataset.Matrix // in the memory of dst, which has room: no other is made
	if o.b.Half() {
		m.F16 = unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/2)
	} else {
		m.F32 = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)
	}
	_, err := o.b.Gather(&m, ids, o.threads)
	return err
}

// Reset gives m the memory of rows rows of features in the stored type, with any content, and returns their bytes.
func (o *Book) Reset(m *dataset.Matrix, rows int) []byte {
	return Reset(m, rows, o.b.Dataset().FeatureDim(), o.b.Half())
}

// Reset gives m the memory of a matrix [rows, cols] of float16 (half) or float32, with any content, and returns its bytes.
func Reset(m *dataset.Matrix, rows, cols int, half bool) []byte {
	m.Rows, m.Cols = rows, cols
	n := rows * cols
	if half {
		m.F16, m.F32 = resize(m.F16, n), nil
		return bytesOf(m.F16)
	}
	m.F32, m.F16 = resize(m.F32, n), nil
	return bytesOf(m.F32)
}

// View makes m the matrix whose rows are in memory that begins at a multiple of 4 bytes, as Reset's bytes are.
func View(m *dataset.Matrix, rows []byte, cols int, half bool) {
	m.Rows, m.Cols, m.F32, m.F16 = len(rows)/RowBytes(cols, half), cols, nil, nil
	if half {
		m.F16 = unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)/2)
	} else {
		m.F32 = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)/4)
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/8)
	}
	return s[:n]
}

func bytesOf[T uint16 | float32](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
