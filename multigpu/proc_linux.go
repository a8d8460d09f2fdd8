package multigpu

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// pssOf is a process's proportional set size in bytes, its resident size if the kernel does not
// report that, or 0 if the process is gone.
func pssOf(pid int) int64 {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				if f := bytes.Fields(rest); len(f) > 0 {
					kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
					return kb << 10
				}
			}
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// procState is the letter of /proc/PID/stat: R, S, D, T (stopped by a signal),
// t (by a debugger), Z; 0 where the process is gone.
func procState(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything, ") R" too.
	i := bytes.LastIndex(b, []byte(") "))
	if i < 0 || i+2 >= len(b) {
		return 0
	}
	return b[i+2]
}

// sweepWait is the time that sweep waits for the processes that it has killed. A process in a
// system call may take a while to end; one that waits for a broken disk never ends.
const sweepWait = time.Second

// sweep kills the remaining processes of the run, which a worker's program started and did not end,
// and waits until they are gone. It finds them by a random value in the environment that they
// inherited from the worker.
func sweep(group string) {
	want := []byte(envknob.Group.Name + "=" + group)
	// A dying process loses its environment before it is gone, so it is remembered.
	found := map[int]bool{}
	for end := time.Now().Add(sweepWait); ; time.Sleep(2 * time.Millisecond) {
		for _, pid := range inGroup(want) {
			found[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
		}
		left := 0
		for pid := range found {
			if st := procState(pid); st != 0 && st != 'Z' {
				left++
			}
		}
		if left == 0 || time.Now().After(end) {
			return
		}
	}
}

// inGroup returns the other processes whose environment contains want.
func inGroup(want []byte) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue // gone, or another user's
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(v, want) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
