//go:build !unix

package atomicfile

import "os"

// SyncDir would make a directory's entries durable: Windows has no such call, and keeps names in a
// journal.
func SyncDir(string) error { return nil }

// rename gives the open file f the name target. A file that is open cannot be renamed there.
func rename(f *os.File, target string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}
