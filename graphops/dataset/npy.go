package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// Element types of a dataset's files; each is mapped without conversion.
var (
	npyFloat32 = npy.Type{Kind: 'f', Size: 4}
	npyFloat16 = npy.Type{Kind: 'f', Size: 2}
	npyInt32   = npy.Type{Kind: 'i', Size: 4}
	npyInt64   = npy.Type{Kind: 'i', Size: 8}
	npyInt8    = npy.Type{Kind: 'i', Size: 1}
)

// npyArray is a parsed file; data is a slice of the file's bytes.
type npyArray struct {
	dtype npy.Type
	shape []int
	data  []byte
}

// parseNPY splits a .npy file into header and data. It accepts row-major arrays of the types above
// whose data has exactly the announced size and can be viewed in place. It never panics.
func parseNPY(file []byte) (npyArray, error) {
	h, err := npy.ReadHeader(bytes.NewReader(file))
	if err != nil {
		return npyArray{}, err
	}
	a := npyArray{dtype: h.Type, shape: h.Shape, data: file[h.Len:]}
	switch h.Type {
	case npyFloat32, npyFloat16, npyInt32, npyInt64, npyInt8:
	default:
		return a, fmt.Errorf("the element type is %q; supported are <f4 (float32), <f2 (float16), <i4 (int32), <i8 (int64) and |i1 (int8)", h.Type.Descr())
	}
	if h.Fortran {
		return a, errors.New("the array is in column-major (Fortran) order: write it with numpy.ascontiguousarray")
	}
	if err := h.CheckSize(int64(len(a.data))); err != nil {
		return a, err
	}
	if len(a.data) > 0 && h.Len%h.Type.Size != 0 {
		return a, fmt.Errorf("its data begins at byte %d, which is not a multiple of the element size %d: write it again with numpy.save", h.Len, h.Type.Size)
	}
	return a, nil
}

// number is an element type that .npy files and memory have in common.
type number interface {
	~float32 | ~uint16 | ~int32 | ~int64 | ~int8
}

// view returns data as a slice of T in the same memory. The data must be aligned for T; parseNPY
// ensures this for a file that begins at a page or at a multiple of 64 bytes.
func view[T number](data []byte) []T {
	var zero T
	n := len(data) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// rawBytes returns the memory of s.
func rawBytes[T number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// littleEndian reports whether this machine has the byte order of the files.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
