//go:build !unix

package machine

import "os/exec"

// ownGroup does nothing: this system has no process groups, and the helper ends when its input
// closes.
func ownGroup(*exec.Cmd) {}

// killGroup ends the helper.
func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }
