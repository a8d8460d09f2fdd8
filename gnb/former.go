package gnb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// former holds the result and the metrics of a run before it was resumed, as other names of the files: resuming writes new
// files. A run whose resumption with changed settings fails before it began gets them back.
type former map[string]string

// keepFormer gives the files in a run's directory other names. On a file system that cannot, nothing is held.
func keepFormer(dir string) former {
	f := former{}
	for _, name := range []string{runfile.Result, runfile.Metrics} {
		path := filepath.Join(dir, name)
		held := filepath.Join(dir, ".former-"+name)
		_ = os.Remove(held)
		if os.Link(path, held) == nil {
			f[path] = held
		}
	}
	return f
}

// endFormer ends the resumption of a run, with err if it failed. If it failed before the resumed run recorded its changed
// settings, the directory gets the files from before.
func (l *launched) endFormer(err error) error {
	if l.former == nil {
		return err
	}
	if err != nil && !l.recordedChange() {
		err = errors.Join(err, l.former.putBack())
	}
	l.former.forget()
	return err
}

// putBack makes the files those from before.
func (f former) putBack() error {
	for path, held := range f {
		if err := os.Rename(held, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("gnb: putting back %s of the run that was not resumed: %w", filepath.Base(path), err)
		}
	}
	return nil
}

// forget removes the other names.
func (f former) forget() {
	for _, held := range f {
		_ = os.Remove(held)
	}
}

// recordedChange reports whether the resumed run has recorded its changed settings, as it does when it begins.
func (l *launched) recordedChange() bool {
	var c runs.Config
	err := runfile.ReadJSON("gnb", filepath.Join(l.run.Dir, runfile.Config), &c)
	return err != nil || len(c.Changes) == len(l.run.Config.Changes)
}
