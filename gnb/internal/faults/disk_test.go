//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/testneed"
)

// envMounts is set in a process that may mount file systems in its own mount namespace.
const envMounts = "GNB_TEST_MOUNTS"

// withMounts runs the test again in a process that may mount a small disk for it, and reports
// whether it did. This needs no root if the system lets users create namespaces. Without mounts the
// caller runs the test, which then skips the cases that need their own disk. atATime cases run
// concurrently: they mostly wait.
func withMounts(t *testing.T, atATime int) bool {
	if os.Getenv(envMounts) != "" {
		return false
	}
	t.Parallel() // concurrently with the tests of the other ways to start ranks
	args := []string{"-test.run=^" + t.Name() + "$", fmt.Sprint("-test.parallel=", atATime)}
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(a, "-test.run") && !strings.HasPrefix(a, "-test.testlogfile") {
			args = append(args, a)
		}
	}
	id := func(n int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: n, Size: 1}}
	}
	for _, attr := range []*syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: id(os.Getuid()), GidMappings: id(os.Getgid())},
		{Unshareflags: syscall.CLONE_NEWNS}, // if the test runs as root
	} {
		may := exec.Command("mount", "-t", "tmpfs", "none", t.TempDir())
		may.SysProcAttr = attr
		if may.Run() != nil {
			continue
		}
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.SysProcAttr, cmd.Env = attr, append(os.Environ(), envMounts+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if testing.Verbose() {
			t.Logf("%s", out)
		}
		return true
	}
	return false
}

// folder creates a folder for a case. Its subfolder runs is a disk of 4 MB if the fault fills the
// disk.
func folder(t *testing.T, c Case) string {
	t.Helper()
	dir := t.TempDir()
	if !c.onDisk() {
		return dir
	}
	if os.Getenv(envMounts) == "" {
		testneed.Skip(t, testneed.Superuser, "neither this user nor its namespaces may mount a small disk")
	}
	disk := filepath.Join(dir, "runs")
	if err := errors.Join(os.Mkdir(disk, 0o755), unix.Mount("none", disk, "tmpfs", 0, "size=4m")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	return dir
}
