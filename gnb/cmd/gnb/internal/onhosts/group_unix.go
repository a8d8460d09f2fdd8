//go:build unix

package onhosts

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes a command the leader of a process group, which the terminal's Ctrl-C does not reach.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command that ownGroup has prepared, and its group.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // it may have ended

// endGroup ends what a command that has ended has left behind in its group: by SIGTERM and, if that does not help within
// killAfter, by SIGKILL.
func endGroup(c *exec.Cmd) {
	if syscall.Kill(-c.Process.Pid, syscall.SIGTERM) != nil {
		return // there is nothing
	}
	for late := time.Now().Add(killAfter); syscall.Kill(-c.Process.Pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			killGroup(c)
			return
		}
	}
}
