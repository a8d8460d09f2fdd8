//go:build !linux && !darwin

package filelock

import "os"

// Lock fails: this system has no locks. See the version for Linux.
func Lock(string) (*os.File, error) { return nil, ErrNoLocks }

// Unlock closes f: there are no locks.
func Unlock(f *os.File) error { return f.Close() }

// LockFile fails: this system has no locks. See the version for Linux.
func LockFile(*os.File) error { return ErrNoLocks }

// Held fails: this system has no locks. See the version for Linux.
func Held(string) (bool, error) { return false, ErrNoLocks }
