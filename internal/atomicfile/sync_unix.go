//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes a directory's entries durable. It ignores the error of file systems that cannot
// sync directories.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	tell(Op{Kind: OpSyncDir, Path: dir})
	return nil
}

// rename gives the open file f the name target.
func rename(f *os.File, target string) error { return os.Rename(f.Name(), target) }
