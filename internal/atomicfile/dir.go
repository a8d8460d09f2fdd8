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

// Dir is a temporary directory that is locked while this process works on it. The lock ends with
// the process, so a directory that can be locked is abandoned.
type Dir struct {
	Path string
	lock *os.File
}

// NewDir removes the directories of dead processes in parent, then creates and locks the directory
// .BASE.tmp-… there.
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
			continue // another process removed it as stale before it was locked
		case err != nil:
			_ = os.Remove(path)
			return nil, err
		}
		// The directory may have been removed between creation and locking.
		here, err1 := os.Stat(path)
		held, err2 := lock.Stat()
		if err1 != nil || err2 != nil || !os.SameFile(here, held) {
			_ = filelock.Unlock(lock)
			continue
		}
		return &Dir{Path: path, lock: lock}, nil
	}
}

// BuildDir lets fill build a directory under a temporary name beside path, and renames it to path
// when fill has returned and all is on disk: path never holds a partial directory. BuildDir creates
// missing parents. If path exists, it returns an error that matches [fs.ErrExist]. fill must sync
// the files that it writes.
func BuildDir(path string, fill func(dir string) error) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(abs); err == nil {
		return fmt.Errorf("%w; remove it or choose another directory", fs.ErrExist)
	}
	return buildDir(abs, fill, func(tmp string) error { return os.Rename(tmp, abs) })
}

// ReplaceDir is BuildDir for a path that may exist: its directory then keeps its content until the new one has its name,
// in one step, and is removed after that. On file systems without such a step (other than Linux's, and some network file
// systems) the path has no directory for a moment: a process that is killed then leaves the old one as path.old, and the
// next ReplaceDir gives it back its name.
func ReplaceDir(path string, fill func(dir string) error) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	old := abs + ".old"
	if _, err := os.Lstat(abs); errors.Is(err, fs.ErrNotExist) {
		if os.Rename(old, abs) != nil {
			return BuildDir(abs, fill)
		}
	}
	return buildDir(abs, fill, func(tmp string) error {
		err := exchange(tmp, abs)
		if err == nil {
			tell(Op{Kind: OpRename, Path: tmp, To: abs})
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.Rename(abs, old); err != nil {
			return err
		}
		tell(Op{Kind: OpRename, Path: abs, To: old})
		if err := os.Rename(tmp, abs); err != nil {
			return errors.Join(err, os.Rename(old, abs))
		}
		tell(Op{Kind: OpRename, Path: tmp, To: abs})
		return os.RemoveAll(old)
	})
}

// buildDir builds a directory under a temporary name, and lets place give it its name. What has the temporary name after
// that is removed.
func buildDir(abs string, fill, place func(dir string) error) error {
	parent, base := filepath.Split(abs)
	if err := MkdirAll(parent, 0o777); err != nil {
		return err
	}
	d, err := NewDir(parent, base)
	if err != nil {
		return err
	}
	defer d.Remove()
	if err := fill(d.Path); err != nil {
		return err
	}
	if err := os.Chmod(d.Path, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	if err := SyncDir(d.Path); err != nil {
		return err
	}
	if err := place(d.Path); err != nil {
		return err
	}
	return SyncDir(parent)
}

// Remove removes the temporary directory, if it still exists, and unlocks it.
func (t *Dir) Remove() {
	_ = os.RemoveAll(t.Path) // a remainder is stale, and the next NewDir removes it
	if t.lock != nil {
		_ = filelock.Unlock(t.lock)
	}
}

// removeStaleDirs removes the unlocked directories of that prefix. It ignores directories that
// cannot be removed.
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
