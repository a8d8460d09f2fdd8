//go:build unix

package machine

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's ^C from the helper: the program handles it, and the helper ends with
// the program.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the helper and the processes that it has started, which hold its output open.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
