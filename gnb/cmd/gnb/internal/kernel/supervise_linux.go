package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"golang.org/x/sys/unix"
)

// Supervise runs GoNB and returns its exit status once every process that GoNB left running has
// ended.
//
// Three measures ensure that no process outlives the kernel. This process is the subreaper of
// everything it starts, so orphans become its children, and it kills them when GoNB ends. The
// system kills GoNB when this process dies. And a guard, a process in a session of its own, waits
// until a pipe that only this process holds is closed: even if this process is killed, the guard
// kills every process whose environment names the kernel's directory, and removes the directory.
// The kernel also ends when the Jupyter that started it ends.
func Supervise(argv, env []string, dir string) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the reaper of the kernel's processes: %w", err)
	}
	stopGuard, guard, err := startGuard(dir)
	if err != nil {
		return 0, err
	}
	defer stopGuard()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGCHLD)
	defer signal.Stop(signals)

	// Pdeathsig acts when the thread that started the child ends, so this thread must stay until
	// the end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr, c.Env = os.Stdin, os.Stdout, os.Stderr, env
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, fmt.Errorf("starting GoNB: %w; \"gnb install\" builds it again", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	parent := time.NewTicker(time.Second)
	defer parent.Stop()
	jupyter := os.Getenv("JPY_PARENT_PID") == strconv.Itoa(os.Getppid()) // false: something other than Jupyter started the kernel
	for {
		select {
		case <-parent.C:
			if jupyter && os.Getenv("JPY_PARENT_PID") != strconv.Itoa(os.Getppid()) {
				_ = c.Process.Kill()
			}
		case s := <-signals:
			if s != syscall.SIGCHLD {
				_ = c.Process.Signal(s) // GoNB may just have ended
				continue
			}
			// Ended orphans would otherwise stay zombies for the life of the kernel.
			for _, pid := range children() {
				if pid != c.Process.Pid && pid != guard {
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
		case <-ended:
			endChildren(guard)
			if s, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
				fmt.Fprintf(os.Stderr, "gnb kernel: GoNB was ended by the signal %q\n", s.Signal())
				return 128 + int(s.Signal()), nil
			}
			return c.ProcessState.ExitCode(), nil
		}
	}
}

// children returns the process ids of this process's children.
func children() []int {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	var pids []int
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for _, p := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(p); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// endChildren kills all children except keep, and the orphans that become children as a result,
// until none is left or two seconds have passed (a process in an uninterruptible wait).
func endChildren(keep int) {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		pids := slices.DeleteFunc(children(), func(pid int) bool { return pid == keep })
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// startGuard starts the guard of dir, which acts when this process ends or stop is called.
func startGuard(dir string) (stop func(), pid int, err error) {
	r, w, err := os.Pipe() // both ends close on exec, so no other child holds the write end
	if err != nil {
		return nil, 0, fmt.Errorf("starting the kernel's guard: %w", err)
	}
	defer r.Close()
	c := exec.Command("/proc/self/exe", "kernel", "--guard="+dir)
	c.Stdin = r
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, envknob.KernelDir.Name+"=") })
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // outside the process group that is killed with the kernel
	if err := c.Start(); err != nil {
		w.Close()
		return nil, 0, fmt.Errorf("starting the kernel's guard: %w", err)
	}
	return func() {
		w.Close()
		_ = c.Wait() // its exit status changes nothing
	}, c.Process.Pid, nil
}

// Guard is the guard process: it waits for the end of standard input, then kills every process of
// the kernel with directory dir and removes dir.
func Guard(dir string) error {
	if !IsDir(dir) { // never remove any other directory
		return fmt.Errorf("%s is not a kernel's directory", dir)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // caught and ignored
	_, _ = io.Copy(io.Discard, os.Stdin)
	// Stop after two scans in a row that find nothing: during the first, a process could have been
	// between fork and exec.
	for empty, end := 0, time.Now().Add(5*time.Second); empty < 2 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		pids := processes(dir)
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("killing process %d of an ended kernel: %w", pid, err)
			}
		}
		if empty++; len(pids) > 0 {
			empty = 0
		}
	}
	removeAll(dir)
	return nil
}

// processes returns the processes whose environment names the kernel directory dir.
func processes(dir string) []int {
	entry := []byte(envknob.KernelDir.Name + "=" + dir)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // ended, or another user's
		}
		if slices.ContainsFunc(bytes.Split(b, []byte{0}), func(e []byte) bool { return bytes.Equal(e, entry) }) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
