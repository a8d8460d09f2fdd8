//go:build unix

package machine

import (
	"os/exec"
	"syscall"
)

// OwnGroup puts a command that is not started yet into a process group of its own, which a terminal's ^C does not reach.
func OwnGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup ends a command that OwnGroup has prepared, and the processes that it has started, which hold its output open.
// The command may have ended.
func KillGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
