//go:build unix

package onhosts

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, which the terminal's Ctrl-C does not reach.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command that ownGroup has prepared, and its group.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // it may have ended
