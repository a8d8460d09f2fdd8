package runfile

import (
	"errors"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/internal/filelock"
	"github.com/graphnb/graphnb/multigpu"
)

// DirLock is a held lock of a run's or a sweep's directory. A nil DirLock holds nothing.
type DirLock struct {
	dir  string
	file *os.File // nil on file systems without locks
}

// Lock locks a directory until Unlock or until this process ends in any way. room is the calling
// package, with which errors begin, and what is "run" or "sweep"; wayOut completes the error of a
// directory that another process uses.
func Lock(room, dir, what, wayOut string) (*DirLock, error) {
	f, err := filelock.Lock(dir)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return nil, fmt.Errorf("%s: %s %s is still running in another process; %s", room, what, dir, wayOut)
	case errors.Is(err, filelock.ErrNoLocks):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: locking the directory of a %s: %w", room, what, err)
	}
	return &DirLock{dir, f}, nil
}

// Unlock releases the directory.
func (l *DirLock) Unlock() {
	if l != nil && l.file != nil {
		_ = filelock.Unlock(l.file)
		l.file = nil
	}
}

// Removed returns an error if the directory was removed or replaced since it was locked.
func (l *DirLock) Removed() error {
	if l == nil || l.file == nil {
		return nil
	}
	here, err := os.Stat(l.dir)
	if err == nil {
		if locked, err := l.file.Stat(); err != nil || os.SameFile(here, locked) {
			return nil //nolint:nilerr // a directory that cannot be read may still exist
		}
	}
	return Removed(l.dir)
}

// InUse reports whether a process holds the directory's lock.
func InUse(dir string) bool {
	held, err := filelock.Held(dir)
	return err == nil && held
}

// ErrRemoved matches the errors of [Removed], also when a worker reports one.
var ErrRemoved error = multigpu.ErrorKind("was removed or replaced")

// Removed returns the error of a run whose directory was removed or replaced while the run was
// writing into it.
func Removed(dir string) error {
	return fmt.Errorf("gnb: the run's directory %s %w during the run, so nothing more of it can be kept; start it again, and leave its directory until it has ended", dir, ErrRemoved)
}
