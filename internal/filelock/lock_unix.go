//go:build linux || darwin

package filelock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// probePatience bounds how long Lock waits for probes to be over. One takes microseconds; a
// process that is stopped in the middle of one would keep Lock for ever.
const probePatience = 10 * time.Second

// Lock locks a directory or file until [Unlock] of the file it returns, or until the process ends. It does
// not wait for another holder: its error then matches [ErrLocked]. Neither does it fail because
// of a process that calls [Held] at the same time. Where there are no locks the error matches
// [ErrNoLocks].
func Lock(path string) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := LockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Unlock ends the lock of f at once, also where a child process has f open, and closes f.
func Unlock(f *os.File) error {
	return errors.Join(flock(f, unix.LOCK_UN), f.Close())
}

// LockFile is [Lock] of a file that is open.
func LockFile(f *os.File) error {
	for start := time.Now(); ; {
		err := flock(f, unix.LOCK_EX)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		// Another process holds it, or probes it. A probe has a shared lock, beside which
		// there is room for one more.
		held, err := Held(f.Name())
		if err != nil {
			return err
		}
		if held || time.Since(start) > probePatience {
			return fmt.Errorf("locking %s: %w", f.Name(), ErrLocked)
		}
		time.Sleep(rand.N(time.Millisecond)) //nolint:gosec // only keeps processes from trying in step
	}
}

// Held says whether some process, this one included, has locked path. It does not keep another
// from locking it.
func Held(path string) (bool, error) {
	f, err := open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = flock(f, unix.LOCK_SH)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// open opens a path without waiting for the other end of a named pipe.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

func flock(f *os.File, how int) (err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if e := c.Control(func(fd uintptr) {
		for {
			if err = unix.Flock(int(fd), how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}); e != nil {
		return e
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	}
	return fmt.Errorf("locking %s: %w (%w)", f.Name(), ErrNoLocks, err)
}
