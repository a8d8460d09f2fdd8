//go:build !unix

package atomicfile

import "os"

// SyncDir does nothing: Windows has no call that makes a directory's entries durable, and keeps
// names in a journal.
func SyncDir(string) error { return nil }

// rename gives the open file f the name target. It closes f first, because Windows cannot rename an
// open file.
func rename(f *os.File, target string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}
