//go:build !unix

package machine

import "os/exec"

// OwnGroup does nothing: this system has no process groups.
func OwnGroup(*exec.Cmd) {}

// KillGroup ends a command, which may have ended.
func KillGroup(c *exec.Cmd) { _ = c.Process.Kill() }
