package plane

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// open opens a file, past the page cache if direct is set and the file system allows it, and returns the alignment that
// its requests need.
func openFile(path string, direct bool) (f *os.File, align int64, isDirect bool, err error) {
	if direct {
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
		switch {
		case err == nil:
			if align, err = directAlign(f); err == nil && align > 0 {
				return f, align, true, nil
			}
			_ = f.Close()
			if err != nil {
				return nil, 0, false, err
			}
		case !errors.Is(err, unix.EINVAL): // EINVAL: the file system has no O_DIRECT
			return nil, 0, false, err
		}
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, false, err
	}
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) // only advice: read nothing ahead
	return f, 1, false, nil
}

// defaultAlign suits every disk of 512 or 4096 bytes per sector, for kernels that do not state the alignment (before Linux
// 6.1).
const defaultAlign = 4096

// directAlign returns the alignment of O_DIRECT reads; 0 if the file does not support them.
func directAlign(f *os.File) (int64, error) {
	var x unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &x)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err != nil || x.Mask&unix.STATX_DIOALIGN == 0 {
		return defaultAlign, nil
	}
	return int64(max(x.Dio_offset_align, x.Dio_mem_align)), nil
}

// preadOf returns the pread of a file.
func preadOf(f *os.File) pread {
	return func(buf []byte, at int64) (int, error) {
		for {
			n, err := unix.Pread(int(f.Fd()), buf, at)
			if !errors.Is(err, unix.EINTR) {
				return max(n, 0), os.NewSyscallError("pread", err)
			}
		}
	}
}

// forget drops the pages that a round has read from the page cache, which has no use for them.
func forget(f *os.File, first, last *request) {
	_ = unix.Fadvise(int(f.Fd()), first.at, last.at+int64(len(last.buf))-first.at, unix.FADV_DONTNEED) // only advice
}

// newMemory returns memory that is aligned for O_DIRECT, outside Go's heap.
func newMemory(n int) []byte {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("disk: %d bytes of memory: %v", n, err)) // as make does
	}
	return m
}

func freeMemory(m []byte) {
	if m != nil {
		_ = unix.Munmap(m)
	}
}
