package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// hugeFrom is the bytes from which on a file gains by large pages.
	hugeFrom = 4 << 20
	// hugeShare is the share of the machine's memory up to which it gets them: a
	// fault then reads 2 MiB, too much of a file that cannot stay in memory.
	hugeShare = 4
)

// hugePages asks the kernel to read the file into pages of 2 MiB, where its file
// system has them (ext4 from Linux 6.16 on, XFS, btrfs) and the file is not in
// memory yet. Rows at random places then miss no entry of the TLB: gathering rows
// of 400 bytes of a file of 1 GB took 20 ms rather than 24 to 36.
func hugePages(data []byte) {
	var info unix.Sysinfo_t
	if len(data) < hugeFrom || unix.Sysinfo(&info) != nil || uint64(len(data)) > info.Totalram*uint64(info.Unit)/hugeShare {
		return
	}
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // only advice; a kernel may have none
}

// HugePages asks the kernel for 2 MiB pages under the whole ones of mem, memory of
// the process that nobody has touched yet: a batch's matrices are tens of megabytes,
// and each 4 KiB page is a fault and an entry of the TLB. Where the kernel has none
// it changes nothing.
func HugePages(mem []byte) {
	const page = 2 << 20
	if len(mem) < 2*page {
		return
	}
	start := uintptr(unsafe.Pointer(&mem[0]))
	lo := (start+page-1)&^(page-1) - start
	hi := (start+uintptr(len(mem)))&^(page-1) - start
	_ = unix.Madvise(mem[lo:hi], unix.MADV_HUGEPAGE) // only advice
}
