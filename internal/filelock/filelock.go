// Package filelock locks files and directories between processes. A lock ends with the process that
// holds it, however that ends. If a lock can be taken, no process works on the file or directory: a
// run's or sweep's directory, or a temporary file.
//
// # Basics
//
//	f, err := filelock.Lock(dir)  // until it is unlocked or this process ends
//	err = filelock.Unlock(f)
//	held, err := filelock.Held(dir)  // is some process holding it?
//
// # Caveats
//
// Locks are advisory and of Linux and macOS; elsewhere, and on file systems without locks, the
// error is [ErrNoLocks]. A lock belongs to the open file, which a child process shares: one that
// inherits it on purpose, and any child for the moment between fork and exec. So closing the file
// alone may release the lock late; [Unlock] releases it at once.
package filelock

import "errors"

// ErrNoLocks says that there are no locks on this system or file system.
var ErrNoLocks = errors.New("this file system or system has no locks")

// ErrLocked is the error of Lock for what another holder has locked.
var ErrLocked = errors.New("locked")
