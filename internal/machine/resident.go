package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Resident returns the anonymous and shared memory of a process and of all its descendants, in bytes: own is that of the
// process, and others that of its descendants. A page that several processes map is divided among them, and pages of
// files do not count. It needs Linux 4.14 and takes time in proportion to that memory, about 1 ms for 100 MB.
func Resident(pid int) (own, others int64, err error) {
	if own, err = anonymous(pid); err != nil {
		return 0, 0, err
	}
	children, err := childrenOf()
	if err != nil {
		return 0, 0, err
	}
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		if n, err := anonymous(todo[0]); err == nil { // else it has ended
			others += n
		}
		todo = append(todo, children[todo[0]]...)
	}
	return own, others, nil
}

// childrenOf returns the children of all processes.
func childrenOf() (map[int][]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("machine: listing processes: %w", err)
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		if f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(f) > 1 {
			if parent, err := strconv.Atoi(f[1]); err == nil {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	return children, nil
}

// anonymous returns a process's anonymous and shared memory.
func anonymous(pid int) (sum int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("machine: reading the memory of process %d: %w", pid, err)
	}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) > 1 && (f[0] == "Pss_Anon:" || f[0] == "Pss_Shmem:") {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("machine: the memory of process %d: %w", pid, err)
			}
			sum += kb << 10
		}
	}
	return sum, nil
}
