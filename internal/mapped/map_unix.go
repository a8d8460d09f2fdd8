//go:build linux || darwin

package mapped

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReadOnly reports whether writing to a mapped file's bytes faults.
const ReadOnly = true

// mapFile maps the file's first size bytes. The mapping is shared if the kernel allows it; before
// Linux 6.7, a memfd sealed against writing can only be mapped privately, which gives the same
// pages for a read-only mapping.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err == unix.EPERM {
		data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	}
	if err != nil {
		return nil, nil, err
	}
	hugePages(data)
	return data, func() error { return unix.Munmap(data) }, nil
}
