//go:build linux || darwin

package filelock

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long Lock waits for probes to finish and for holders that have been killed to end. A
// probe takes microseconds; a process stopped during one would block Lock forever.
const patience = 10 * time.Second

// Lock locks a directory or file until [Unlock] of the file it returns, or until the process ends.
// It does not wait for another holder: its error then matches [ErrLocked]. But on Linux it waits, for up to ten
// seconds, for one that has been killed and still has a thread that writes to a disk. A concurrent call of
// [Held] does not make it fail. On systems without locks, the error matches [ErrNoLocks].
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

// Unlock releases the lock of f at once, even if a child process has f open, and closes f.
func Unlock(f *os.File) error {
	return errors.Join(flock(f, unix.LOCK_UN), f.Close())
}

// LockFile is [Lock] for an open file.
func LockFile(f *os.File) error {
	lost := 0
	for start := time.Now(); ; {
		err := flock(f, unix.LOCK_EX)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		// Another process holds the lock, or probes it. A probe takes a shared lock, which allows
		// other shared locks.
		held, err := Held(f.Name())
		if err != nil {
			return err
		}
		locked := fmt.Errorf("locking %s: %w", f.Name(), ErrLocked)
		if held {
			switch holder(f) {
			case alive:
				return locked
			case unseen:
				lost++
			}
		}
		if lost > 20 || time.Since(start) > patience {
			return locked
		}
		time.Sleep(rand.N(time.Millisecond)) //nolint:gosec // only keeps processes from trying in step
	}
}

// How a process that holds a lock is seen.
const (
	alive  = iota
	ending // it has been killed, and is a zombie until the last of its threads has ended
	unseen // it has ended just now, or is in another container
)

// holder sees the process that holds the lock of f.
func holder(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return alive
	}
	inode := fmt.Sprint(":", info.Sys().(*syscall.Stat_t).Ino)
	locks, err := os.ReadFile("/proc/locks") // each line: number, FLOCK, ADVISORY, WRITE, process, device:inode, range
	if err != nil {
		return alive // as on macOS
	}
	seen := unseen
	for line := range strings.Lines(string(locks)) {
		w := strings.Fields(line)
		if len(w) < 6 || w[1] != "FLOCK" || w[3] != "WRITE" || !strings.HasSuffix(w[5], inode) {
			continue
		}
		stat, err := os.ReadFile("/proc/" + w[4] + "/stat") // process, (command), state
		if end := bytes.LastIndex(stat, []byte(") ")); err != nil || end < 0 || stat[end+2] != 'Z' && stat[end+2] != 'X' {
			return alive // or a child of the process that took the lock is
		}
		seen = ending
	}
	return seen
}

// Held reports whether some process, this one included, has locked path. It does not prevent other
// processes from locking path.
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
