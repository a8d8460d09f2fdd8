//go:build linux || darwin

package tempdir

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks a directory or file until the file it returns is closed or the process ends.
// It does not wait: what is locked is [ErrLocked], and where there are no
// locks the error is [ErrNoLocks].
func Lock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("locking %s: %w (%w)", path, ErrNoLocks, err)
}
