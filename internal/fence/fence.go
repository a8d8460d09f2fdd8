// Package fence provides memory for tests of assembly: slices between pages that can be neither
// read nor written, so that an access one element out of range faults.
package fence

import (
	"testing"
	"unsafe"
)

// Slice returns n zeros that end where an unreadable page begins. The memory is unmapped when the
// test ends.
func Slice[T any](t testing.TB, n int) []T {
	size := n * int(unsafe.Sizeof(*new(T)))
	pages := between(t, size)
	return view[T](pages[len(pages)-size:], n)
}

// SliceBehind returns n zeros that begin where an unreadable page ends.
func SliceBehind[T any](t testing.TB, n int) []T {
	size := n * int(unsafe.Sizeof(*new(T)))
	return view[T](between(t, size)[:size], n)
}

func view[T any](b []byte, n int) []T {
	if len(b) == 0 {
		return make([]T, n)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}
