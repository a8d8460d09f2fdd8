//go:build !linux && !darwin

package mapped

import (
	"io"
	"os"
	"unsafe"
)

// ReadOnly reports whether writing to a mapped file's bytes faults.
const ReadOnly = false

// mapFile reads the file into memory, because this system has no mmap. It allocates the memory as
// words, so that it is as aligned as a mapping for every element type.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	words := make([]uint64, (size+7)/8)
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
