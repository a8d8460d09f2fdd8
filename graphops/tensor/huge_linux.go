package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages asks the kernel for 2 MiB pages under a large buffer before it is
// first touched: a batch's matrices are tens of megabytes, and each 4 KiB page is
// a fault and an entry of the TLB. Where the kernel has none it changes nothing.
func hugePages(mem []float32) {
	const page = 2 << 20
	if 4*len(mem) < 2*page {
		return
	}
	start := uintptr(unsafe.Pointer(&mem[0]))
	lo := (start + page - 1) &^ (page - 1)
	hi := (start + uintptr(4*len(mem))) &^ (page - 1)
	if hi <= lo {
		return
	}
	part := unsafe.Slice((*byte)(unsafe.Pointer(&mem[(lo-start)/4])), hi-lo)
	_ = unix.Madvise(part, unix.MADV_HUGEPAGE) // only advice
}
