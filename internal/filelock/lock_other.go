//go:build !linux && !darwin

package filelock

import "os"

// Lock would lock a directory or file: see the version for Linux.
func Lock(string) (*os.File, error) { return nil, ErrNoLocks }

// Unlock closes f: there are no locks.
func Unlock(f *os.File) error { return f.Close() }

// LockFile would lock an open file: see the version for Linux.
func LockFile(*os.File) error { return ErrNoLocks }

// Held would say whether a directory or file is locked: see the version for Linux.
func Held(string) (bool, error) { return false, ErrNoLocks }
