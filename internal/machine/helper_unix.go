//go:build unix

package machine

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's ^C from a process: it is for the program, and the helper
// ends when the program says so, or ends itself.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
