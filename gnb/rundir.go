package gnb

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/graphnb/graphnb/internal/filelock"
)

// lockDir marks the directory of a run or sweep as one that goes on, until the file is closed or
// this process ends, however it does. The file is nil where there are no locks.
func lockDir(dir, what, wayOut string) (*os.File, error) {
	f, err := filelock.Lock(dir)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return nil, fmt.Errorf("gnb: %s %s is still going on in another process; %s", what, dir, wayOut)
	case errors.Is(err, filelock.ErrNoLocks):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("gnb: locking the directory of a %s: %w", what, err)
	}
	return f, nil
}

func (l *launched) lockRun(dir string) (err error) {
	l.lock, err = lockDir(dir, "run", "watch it with gnb.Attach, or wait for its end")
	return err
}

// lockSweep locks the sweep's directory; unlock ends that.
func (s *sweep) lockSweep(dir string) (err error) {
	s.lock, err = lockDir(dir, "sweep", "wait for its end, or choose another directory (Dir, --dir)")
	return err
}

func (s *sweep) unlock() {
	if s.lock != nil {
		_ = filelock.Unlock(s.lock)
		s.lock = nil
	}
}

// goesOn tells whether some process is running the run in dir.
func goesOn(dir string) bool {
	held, err := filelock.Held(dir)
	return err == nil && held
}

// removedError says that a run's directory is not there any more.
type removedError struct{ dir string }

func (e removedError) Error() string {
	return fmt.Sprintf("gnb: the run's directory %s was removed or replaced while the run was going on, so nothing more of it can be kept; start it again, and leave its directory until it has ended", e.dir)
}

func errRemoved(dir string) error { return removedError{dir} }

// there is an error if the run's directory was removed since it was locked.
func (l *launched) there() error {
	if l.run.Dir == "" || l.lock == nil {
		return nil
	}
	here, err := os.Stat(l.run.Dir)
	if err == nil {
		if locked, err := l.lock.Stat(); err != nil || os.SameFile(here, locked) {
			return nil //nolint:nilerr // what cannot be looked at is not known to be gone
		}
	}
	return errRemoved(l.run.Dir)
}

// said says whether an error's words have those of another in them.
func said(err, other error) bool { return err != nil && strings.Contains(err.Error(), other.Error()) }
