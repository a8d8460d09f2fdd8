// Package filelock locks files and directories between processes. A lock ends with the process that
// holds it, even if that process is killed. If a lock can be taken, no process works on the file or
// directory, such as a run's or sweep's directory, or a temporary file.
//
// # Basics
//
//	f, err := filelock.Lock(dir)  // until it is unlocked or this process ends
//	err = filelock.Unlock(f)
//	held, err := filelock.Held(dir)  // is some process holding it?
//
// # Caveats
//
// Locks are advisory and need Linux or macOS; elsewhere, and on file systems without locks, the
// error is [ErrNoLocks]. A lock belongs to the open file description, which child processes share:
// a child that inherits it on purpose, and any child between fork and exec. So closing the file may
// release the lock late; [Unlock] releases it at once.
//
// The locks are flock's. Open-file-description locks of fcntl cannot replace them: an exclusive one needs a file that is
// open for writing, which a directory cannot be, and /proc/locks does not name its holder.
package filelock

import "errors"

// ErrNoLocks reports that this system or file system has no locks.
var ErrNoLocks = errors.New("this file system or system has no locks")

// ErrLocked is the error of Lock if another holder has the lock.
var ErrLocked = errors.New("locked")
