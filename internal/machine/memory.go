package machine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Memory is the memory of the host as this process sees it.
type Memory struct {
	// Free is the memory that can be allocated without swapping and without the kernel ending a
	// process, in bytes. Memory that only caches files counts as free.
	Free int64
	// Limit is the limit of the control group that leaves the least memory, in bytes; 0 if there is
	// none, or if the machine has less free memory.
	Limit int64
	// Total is Limit if it is set, else the machine's memory, in bytes.
	Total int64
}

// ReadMemory reads the memory from the kernel. It needs Linux; elsewhere it returns an error. It
// takes a few tens of microseconds.
func ReadMemory() (Memory, error) { return readMemoryIn("/proc", "/sys/fs/cgroup") }

// readMemoryIn is ReadMemory with other directories for /proc and /sys/fs/cgroup.
func readMemoryIn(proc, groups string) (Memory, error) {
	info := filepath.Join(proc, "meminfo")
	free, err := field(info, "MemAvailable:")
	if err != nil {
		return Memory{}, err
	}
	total, err := field(info, "MemTotal:")
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Free: free << 10, Total: total << 10} // the kernel's figures are in KB
	for _, v := range versions {
		for _, dir := range v.groups(proc, groups) {
			if limit, left := v.room(dir); left < m.Free {
				m.Free, m.Limit, m.Total = left, limit, limit
			}
		}
	}
	return m, nil
}

// PeakRSS returns the largest resident set of this process so far, in bytes; 0 if the system does
// not report it.
func PeakRSS() int64 {
	kb, err := field("/proc/self/status", "VmHWM:")
	if err != nil {
		return 0
	}
	return kb << 10
}

// version describes where a version of control groups states its memory limits. A machine may have
// both versions; the one that does not manage memory has no such files.
type version struct {
	own         *regexp.Regexp // the line of /proc/self/cgroup that names the group
	mount       string         // below /sys/fs/cgroup
	limit, used string
	caches      []string // fields of memory.stat: memory that the kernel frees at the limit
}

var v2 = version{
	regexp.MustCompile(`(?m)^0::(.*)$`), "", "memory.max", "memory.current", []string{"inactive_file", "active_file"},
}

var versions = []version{v2, {
	regexp.MustCompile(`(?m)^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$`), "memory",
	"memory.limit_in_bytes", "memory.usage_in_bytes",
	[]string{"total_inactive_file", "total_active_file"},
}}

// controlGroups returns the directories of this process's control group (version 2) and of those above it, which limit
// it too, from its own to the root. They need not exist.
func controlGroups(proc, groups string) []string { return v2.groups(proc, groups) }

// groups returns the directories of this process's group and of its ancestors; only the root if its
// own is unknown. In a container, the root is the container's own group.
func (v version) groups(proc, groups string) (dirs []string) {
	dir := "/"
	if b, err := os.ReadFile(filepath.Join(proc, "self", "cgroup")); err == nil {
		if m := v.own.FindSubmatch(b); m != nil {
			dir = path.Clean("/" + string(m[1]))
		}
	}
	for ; ; dir = path.Dir(dir) {
		dirs = append(dirs, filepath.Join(groups, v.mount, dir))
		if dir == "/" {
			return dirs
		}
	}
}

// room returns the limit of a group and the memory left under it; without a limit, left is the
// largest int64.
func (v version) room(dir string) (limit, left int64) {
	limit, err := number(filepath.Join(dir, v.limit))
	if err != nil { // "max", or no such group here
		return 0, math.MaxInt64
	}
	used, err := number(filepath.Join(dir, v.used))
	if err != nil {
		return 0, math.MaxInt64
	}
	for _, name := range v.caches {
		if n, err := field(filepath.Join(dir, "memory.stat"), name); err == nil {
			used -= n
		}
	}
	return limit, max(0, limit-max(0, used))
}

func number(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

var errMissing = errors.New("the kernel does not say it; Linux 3.14 and newer do")

// field returns the number after a name in a file of names and numbers.
func field(file, name string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("asking for free memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("asking for free memory: %s in %s: %w", name, file, errMissing)
}
