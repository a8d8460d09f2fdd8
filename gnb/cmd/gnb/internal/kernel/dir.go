package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/filelock"
)

// dirPrefix is the prefix of the names of kernels' directories.
const dirPrefix = "gnb-kernel-"

// IsDir reports whether a directory has the name of a kernel's directory.
func IsDir(dir string) bool { return strings.HasPrefix(filepath.Base(dir), dirPrefix) }

// NewDir makes a kernel's own temporary directory in parent. The directory belongs to this
// process as long as it holds a lock on the file "lock" in it, whatever becomes of process ids and
// containers. release removes it.
func NewDir(parent string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making the kernel's temporary directory: %w", err)
	}
	// Locked before it gets its name: a lock file that can be seen is a locked one or a dead one's.
	file := filepath.Join(dir, ".lock")
	var lock *os.File
	if err = os.WriteFile(file, nil, 0o600); err == nil {
		lock, err = filelock.Lock(file)
	}
	if err == nil || errors.Is(err, filelock.ErrNoLocks) { // where there are none, nobody sweeps
		err = os.Rename(file, filepath.Join(dir, "lock"))
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("locking the kernel's temporary directory: %w", err)
	}
	return dir, func() {
		removeAll(dir)
		_ = filelock.Unlock(lock)
	}, nil
}

// SweepDirs removes the directories of kernels that were killed before they could remove them.
func SweepDirs(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	for _, dir := range dirs {
		lock, err := filelock.Lock(filepath.Join(dir, "lock"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Being made, or its maker died within microseconds.
			if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
				removeAll(dir)
			}
		case err == nil: // else it is alive, or another user's
			removeAll(dir)
			_ = filelock.Unlock(lock)
		}
	}
}

// removeAll removes dir, trying again while a dying process still writes into it.
func removeAll(dir string) {
	for range 50 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
