//go:build unix

package onhosts

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// endGroup ends what a command that has ended has left behind in its group: by SIGTERM and, if that does not help within
// killAfter, by SIGKILL.
func endGroup(c *exec.Cmd) {
	if syscall.Kill(-c.Process.Pid, syscall.SIGTERM) != nil {
		return // there is nothing
	}
	for late := time.Now().Add(killAfter); syscall.Kill(-c.Process.Pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			machine.KillGroup(c)
			return
		}
	}
}
