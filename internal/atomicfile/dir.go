package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/internal/filelock"
)

// Dir is a directory that is locked as long as this process works on it.
// The lock ends with the process, however that ends, so a directory that can be
// locked is one that nobody will finish.
type Dir struct {
	Path string
	lock *os.File
}

// NewDir makes and locks the directory .BASE.tmp-… in parent, once it has
// removed those that dead processes left there.
func NewDir(parent, base string) (*Dir, error) {
	prefix := "." + base + ".tmp-"
	removeStaleDirs(parent, prefix)
	for {
		path, err := os.MkdirTemp(parent, prefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := filelock.Lock(path)
		switch {
		case errors.Is(err, filelock.ErrNoLocks):
			return &Dir{Path: path}, nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, filelock.ErrLocked):
			continue // another process took it for a stale one before it was locked
		case err != nil:
			_ = os.Remove(path)
			return nil, err
		}
		// It may have been removed between its making and its locking.
		here, err1 := os.Stat(path)
		held, err2 := lock.Stat()
		if err1 != nil || err2 != nil || !os.SameFile(here, held) {
			_ = filelock.Unlock(lock)
			continue
		}
		return &Dir{Path: path, lock: lock}, nil
	}
}

// BuildDir has fill put a directory together under another name beside path, and
// renames it to path when fill is done and all is on disk: there is no moment at
// which path holds a part of it. Missing parents are made. What is at path already
// is an error, as of [fs.ErrExist]. fill syncs the files that it writes.
func BuildDir(path string, fill func(dir string) error) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(abs); err == nil {
		return fmt.Errorf("%w; remove it or choose another directory", fs.ErrExist)
	}
	parent, base := filepath.Split(abs)
	if err := MkdirAll(parent, 0o777); err != nil {
		return err
	}
	d, err := NewDir(parent, base)
	if err != nil {
		return err
	}
	defer d.Remove() // after the rename nothing is left under the name
	if err := fill(d.Path); err != nil {
		return err
	}
	if err := os.Chmod(d.Path, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	if err := SyncDir(d.Path); err != nil {
		return err
	}
	if err := os.Rename(d.Path, abs); err != nil {
		return err
	}
	return SyncDir(parent)
}

// Remove removes what is left of the directory under its temporary name and
// unlocks it.
func (t *Dir) Remove() {
	_ = os.RemoveAll(t.Path) // what stays is stale, and the next Write removes it
	if t.lock != nil {
		_ = filelock.Unlock(t.lock)
	}
}

// removeStaleDirs removes the directories of that prefix that nobody has locked.
// What cannot be removed stays: it is in nobody's way.
func removeStaleDirs(parent, prefix string) {
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
		if lock, err := filelock.Lock(path); err == nil {
			_ = os.RemoveAll(path)
			_ = filelock.Unlock(lock)
		}
	}
}
