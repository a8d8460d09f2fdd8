//go:build !unix

package onhosts

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

func killGroup(c *exec.Cmd) { _ = c.Process.Kill() } // it may have ended
