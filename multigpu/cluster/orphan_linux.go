package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// orphanEvery is the time between two checks of the launcher's process.
const orphanEvery = 100 * time.Millisecond

// awaitLauncher closes the channel that it returns, after setting *what, when the launcher's process on this machine has
// ended: mpirun, or the daemon that it has started here, slurmstepd, or torchrun. A launcher that is killed cannot end its
// ranks. The channel is nil if there is nothing to wait for: what else sets torchrun's variables, such as a script or a
// pod, may end before its ranks.
func awaitLauncher(p *Place, what *string) <-chan struct{} {
	pid, ok := launcherOf(p.Launcher, os.Getpid())
	if !ok {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended already, or this kernel has no such files
	}
	name, _, _ := procStat(pid)
	if now, ok := launcherOf(p.Launcher, os.Getpid()); !ok || now != pid { // it ended in between
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

// launcherOf is the process of a launcher that started a process.
func launcherOf(launcher string, of int) (pid int, ok bool) {
	switch launcher {
	case OpenMPI, MPICH:
		// mpirun makes each rank, or the shell that starts it, the leader of a process group.
		group, err := unix.Getpgid(of)
		if err != nil {
			return 0, false
		}
		_, pid, ok = procStat(group)
		return pid, ok && pid > 1
	case Slurm:
		return ancestor(of, func(pid int, name string) bool { return strings.HasPrefix(name, "slurmstepd") }) // Debian's is slurmstepd-wlm
	case Torchrun:
		return ancestor(of, func(pid int, _ string) bool {
			words, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			return err == nil && isTorchrun(strings.Split(string(words), "\x00"))
		})
	}
	return 0, false
}

// ancestor is the nearest process above another one that fits.
func ancestor(of int, fits func(pid int, name string) bool) (pid int, ok bool) {
	_, pid, ok = procStat(of)
	for ok && pid > 1 {
		name, above, there := procStat(pid)
		if there && fits(pid, name) {
			return pid, true
		}
		pid, ok = above, there
	}
	return 0, false
}

// isTorchrun reports whether the words of a command are those of PyTorch's launcher, the script
// torchrun or Python with its module, or those of gnb launch on a host. It checks the words only up to the
// first one that is not an option.
func isTorchrun(words []string) bool {
	for i, w := range words[:min(len(words), 8)] {
		switch base := filepath.Base(w); {
		case base == "torchrun", i == 1 && w == OnHost:
			return true
		case w == "-m":
			return i+1 < len(words) && (words[i+1] == "torch.distributed.run" || words[i+1] == "torch.distributed.launch")
		case i > 0 && !strings.HasPrefix(w, "-"):
			return false
		}
	}
	return false
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
