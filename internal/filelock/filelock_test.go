//go:build linux || darwin

package filelock_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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

// Lock waits for a holder that has been killed and whose last thread has not ended yet, and not for one that lives.
func TestLockWaitsForAHolderThatEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the holders of locks")
	}
	for _, ends := range []bool{false, true} {
		dir := t.TempDir()
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v", holderDir, dir, ends))
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it holds the lock
			t.Fatal(err)
		}
		stat := func() string {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
			return string(b)
		}
		for ends && !strings.Contains(stat(), ") Z ") {
			time.Sleep(time.Millisecond)
		}
		const threadEndsAfter = 300 * time.Millisecond
		timer := time.AfterFunc(threadEndsAfter, func() { _ = in.Close() })
		f, err := filelock.Lock(dir)
		if ends && err != nil || !ends && !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("the holder ends: %v; locking gave %v", ends, err)
		}
		if err == nil {
			err = filelock.Unlock(f)
		}
		if ends && err != nil {
			t.Error(err)
		}
		timer.Stop()
		_ = in.Close()
		_ = child.Wait()
	}
}

// holderDir names the environment variable of the process that holds a lock for the test above: the directory, and
// whether the thread that the system takes for the process ends.
const holderDir = "GRAPHNB_TEST_HOLD"

func init() { runtime.LockOSThread() } // main runs on the first thread

func TestMain(m *testing.M) {
	dir, ends, hold := strings.Cut(os.Getenv(holderDir), " ")
	if !hold {
		runtime.UnlockOSThread()
		os.Exit(m.Run())
	}
	go func() {
		if _, err := filelock.Lock(dir); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("!")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	if ends == "true" {
		time.Sleep(50 * time.Millisecond)
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // of this thread alone
	}
	select {}
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
