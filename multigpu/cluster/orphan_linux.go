package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// orphanEvery is the time between two looks at the launcher's process.
const orphanEvery = 100 * time.Millisecond

// awaitLauncher closes the channel that it returns, after setting *what, when the launcher's process on this machine has
// ended: mpirun, or the daemon that it has started here. A launcher that is killed cannot end its ranks. The channel is
// nil if there is nothing to wait for; other launchers than mpirun end their ranks in every case, or may themselves end
// before their ranks.
func awaitLauncher(p *Place, what *string) <-chan struct{} {
	if p.Launcher != OpenMPI && p.Launcher != MPICH {
		return nil
	}
	// mpirun makes each rank, or the shell that starts it, the leader of a process group.
	_, pid, ok := procStat(unix.Getpgrp())
	if !ok || pid <= 1 {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended already, or this kernel has no such files
	}
	name, _, _ := procStat(pid)
	if _, now, ok := procStat(unix.Getpgrp()); !ok || now != pid { // it ended in between
		_ = unix.Close(fd)
		return nil
	}
	gone := make(chan struct{})
	go func() {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if n > 0 || err != nil && err != unix.EINTR {
				break
			}
			time.Sleep(orphanEvery)
		}
		*what = fmt.Sprintf("has lost its launcher: %s (pid %d) has ended", name, pid)
		close(gone)
	}()
	return gone
}

// procStat is the name and the parent of a process.
func procStat(pid int) (name string, parent int, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, false
	}
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return "", 0, false
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(f[1])
	return text[open+1 : end], parent, err == nil
}
