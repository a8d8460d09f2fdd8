package gnb

import (
	"fmt"
	"os"
	"strings"
)

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
