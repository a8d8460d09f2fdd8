//go:build !unix

package machine

import "os/exec"

// ownGroup does nothing: this system has no process groups, and the helper ends when its input
// closes.
func ownGroup(*exec.Cmd) {}
