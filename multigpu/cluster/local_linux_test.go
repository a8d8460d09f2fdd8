package cluster

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// MPICH sets no job number in jobs over several nodes, but each job has its own launcher process;
// the socket's name therefore depends on that process.
func TestSocketNameUnderMPICH(t *testing.T) {
	name := func(parent int) string {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		t.Setenv("PMI_FD", "-1") // without a socket of the launcher, the parent process identifies the job
		if parent == os.Getpid() {
			t.Setenv("PMI_FD", strconv.Itoa(fds[0]))
		}
		p := &Place{Launcher: MPICH, World: 4, LocalWorld: 2}
		return (&Session{place: p, self: hello{Launcher: MPICH, World: 4}}).socketName()
	}
	if a, b := name(os.Getpid()), name(os.Getppid()); a == b {
		t.Errorf("jobs of two launchers share the name %s", a)
	}
	if a, b := name(os.Getpid()), name(os.Getpid()); a != b {
		t.Errorf("ranks of one launcher have the names %s and %s", a, b)
	}
}
