package gnb

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/graphnb/graphnb/internal/filelock"
)

// lockRun marks the run's directory as in use, until the file is closed or this process ends, however it
// does. Where there are no locks it does nothing.
func (l *launched) lockRun(dir string) (err error) {
	l.lock, err = filelock.Lock(dir)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return fmt.Errorf("gnb: run %s is still going on in another process; watch it with gnb.Attach, or wait for its end", dir)
	case errors.Is(err, filelock.ErrNoLocks):
		return nil
	case err != nil:
		return fmt.Errorf("gnb: locking the directory of a run: %w", err)
	}
	return nil
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
