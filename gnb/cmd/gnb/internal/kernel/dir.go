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

// dirPrefix begins the names of kernels' directories.
const dirPrefix = "gnb-kernel-"

// IsDir reports whether a directory's name is that of a kernel's directory.
func IsDir(dir string) bool { return strings.HasPrefix(filepath.Base(dir), dirPrefix) }

// NewDir makes a kernel's own temporary directory in parent. The directory belongs to this process
// as long as the process holds a lock on the file "lock" in it; process ids could be reused, or
// belong to another container. release removes the directory.
func NewDir(parent string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making the kernel's temporary directory: %w", err)
	}
	// Lock before naming: a visible lock file is then locked, or its process is dead.
	file := filepath.Join(dir, ".lock")
	var lock *os.File
	if err = os.WriteFile(file, nil, 0o600); err == nil {
		lock, err = filelock.Lock(file)
	}
	if err == nil || errors.Is(err, filelock.ErrNoLocks) { // a system without locks has no sweeping either
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
			// The directory is being made, or its process died within microseconds of making it.
			if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
				removeAll(dir)
			}
		case err == nil: // otherwise its process is alive, or it is another user's
			removeAll(dir)
			_ = filelock.Unlock(lock)
		}
	}
}

// removeAll removes dir, and retries while a dying process still writes into it.
func removeAll(dir string) {
	for range 50 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
