package dataset

import (
	"encoding/binary"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// Element types of a dataset's files; each is mapped without conversion.
var npyFloat32, npyFloat16, npyInt32, npyInt64, npyInt8, npyUint16 = npy.Float32, npy.Float16, npy.Int32, npy.Int64, npy.Int8, npy.Uint16

// npyArray is a parsed file; data is a slice of the file's bytes.
type npyArray struct {
	dtype npy.Type
	shape []int
	data  []byte
}

// parseNPY splits a .npy file into header and data: see npy.Parse.
func parseNPY(file []byte) (npyArray, error) {
	h, data, err := npy.Parse(file)
	return npyArray{dtype: h.Type, shape: h.Shape, data: data}, err
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
