//go:build unix

package fence

import (
	"os"
	"runtime/debug"
	"testing"
	"unsafe"
)

// faults reports whether reading the element at offset i from s[0] faults.
func faults(s []int32, i int) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	sink = *(*int32)(unsafe.Add(unsafe.Pointer(&s[0]), 4*i))
	return false
}

var sink int32

func TestSlicesEndAtFences(t *testing.T) {
	page := os.Getpagesize() / 4
	for _, n := range []int{1, 3, page - 1, page, page + 1, 3 * page} {
		up, down := Slice[int32](t, n), SliceBehind[int32](t, n)
		for i := range n {
			up[i], down[i] = int32(i), int32(i)
		}
		if faults(up, n-1) || !faults(up, n) || faults(down, 0) || !faults(down, -1) {
			t.Errorf("%d elements: a slice does not touch its fence", n)
		}
	}
	if len(Slice[int64](t, 0)) != 0 || len(SliceBehind[int64](t, 0)) != 0 {
		t.Error("a slice of length 0 has elements")
	}
}
