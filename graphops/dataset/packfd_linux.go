package dataset

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// packFD packs d into an anonymous file in memory, sealed against changes. The memory is freed when
// every descriptor and mapping of it is gone; the caller must close the file.
func (d *Dataset) packFD() (*os.File, error) {
	fd, err := unix.MemfdCreate("dataset "+memfdName(d.Name()), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("dataset: packing %s: memfd_create: %w", d.Name(), err)
	}
	f := os.NewFile(uintptr(fd), "dataset "+d.Name()+" (in memory)")
	if err := d.pack(f, int64(os.Getpagesize())); err != nil {
		_ = f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("dataset: packing %s: sealing its memory: %w", d.Name(), err)
	}
	return f, nil
}

// memfdName returns a name that memfd_create accepts: at most 249 bytes, no zero byte.
func memfdName(name string) string {
	clean := make([]byte, 0, 64)
	for i := 0; i < len(name) && i < 64; i++ {
		if name[i] != 0 {
			clean = append(clean, name[i])
		}
	}
	return string(clean)
}

// duplicate returns another descriptor of the same open file.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("dataset: duplicating the descriptor of %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
