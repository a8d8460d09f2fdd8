//go:build linux || darwin

package filelock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/filelock"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		if held, err := filelock.Held(path); held || err != nil {
			t.Error(held, err)
		}
		f, err := filelock.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := filelock.Lock(path); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("locked twice: %v", err)
		}
		if held, err := filelock.Held(path); !held || err != nil {
			t.Error(held, err)
		}
		if err := filelock.Unlock(f); err != nil {
			t.Error(err)
		}
		if held, err := filelock.Held(path); held || err != nil {
			t.Error(held, err)
		}
	}
	if _, err := filelock.Lock(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := filelock.Held(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Unlock releases the lock even if a child process has the file open, as every child has between
// fork and exec.
func TestUnlockEndsSharedLock(t *testing.T) {
	dir := t.TempDir()
	f, err := filelock.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{f}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	if err := filelock.Unlock(f); err != nil {
		t.Fatal(err)
	}
	if f, err = filelock.Lock(dir); err != nil {
		t.Fatalf("locking after Unlock, while a child has the file open, gave %v", err)
	}
	if err := filelock.Unlock(f); err != nil {
		t.Error(err)
	}
}

// Calls of Held do not keep others from locking a directory, and of several processes that try to
// lock it at once exactly one succeeds.
func TestProbesDoNotBlock(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var probes, lockers sync.WaitGroup
	for range 4 {
		probes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := filelock.Held(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		f, err := filelock.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			lockers.Go(func() {
				if _, err := filelock.Lock(dir); !errors.Is(err, filelock.ErrLocked) {
					t.Errorf("a second Lock gave %v", err)
				}
			})
		}
		lockers.Wait()
		_ = f.Close()
	}
	close(stop)
	probes.Wait()
}
