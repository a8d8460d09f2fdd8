//go:build linux || darwin

package dataset

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir locks a directory until the file it returns is closed or the process
// ends. It does not wait: a locked directory is errLocked.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if err == unix.EWOULDBLOCK {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking %s: %w (%w)", path, errNoLocks, err)
}
