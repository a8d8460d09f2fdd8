package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempDir is a directory that is locked as long as this process works on it.
// The lock ends with the process, however that ends, so a directory that can be
// locked is one that nobody will finish.
type tempDir struct {
	path string
	lock *os.File
}

// errNoLocks is the error of lockDir where there are no locks.
var errNoLocks = errors.New("this file system or system has no locks")

// newTempDir makes and locks the directory .BASE.tmp-… in parent, once it has
// removed those that dead processes left there.
func newTempDir(parent, base string) (*tempDir, error) {
	prefix := "." + base + ".tmp-"
	removeStale(parent, prefix)
	for {
		path, err := os.MkdirTemp(parent, prefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := lockDir(path)
		switch {
		case errors.Is(err, errNoLocks):
			return &tempDir{path: path}, nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errLocked):
			continue // another process took it for a stale one before it was locked
		case err != nil:
			_ = os.Remove(path)
			return nil, err
		}
		// It may have been removed between its making and its locking.
		here, err1 := os.Stat(path)
		held, err2 := lock.Stat()
		if err1 != nil || err2 != nil || !os.SameFile(here, held) {
			_ = lock.Close()
			continue
		}
		return &tempDir{path: path, lock: lock}, nil
	}
}

// remove removes what is left of the directory under its temporary name and
// unlocks it.
func (t *tempDir) remove() {
	_ = os.RemoveAll(t.path) // what stays is stale, and the next Write removes it
	if t.lock != nil {
		_ = t.lock.Close()
	}
}

// errLocked is the error of lockDir for a directory that somebody works on.
var errLocked = errors.New("locked")

// removeStale removes the directories of that prefix that nobody has locked.
// What cannot be removed stays: it is in nobody's way.
func removeStale(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours || !e.IsDir() || rest == "" || strings.Trim(rest, "0123456789") != "" {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if lock, err := lockDir(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}
