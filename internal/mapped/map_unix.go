//go:build linux || darwin

package mapped

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReadOnly tells whether writing to a mapped file's bytes faults.
const ReadOnly = true

// mapFile maps the file's first size bytes. The mapping is shared where the
// kernel allows it; a memfd sealed against writing it maps only privately before
// Linux 6.7, which for a read-only mapping is the same pages.
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
