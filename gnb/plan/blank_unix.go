//go:build unix

package plan

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// blank returns n elements that are never read nor written to and take no memory, and a function that frees them.
func blank(n int) (elements []float32, free func()) {
	b, err := unix.Mmap(-1, 0, max(4*n, 1), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]float32, n), func() {}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n), func() { _ = unix.Munmap(b) }
}
