//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// alone starts a program in a new process group, which is ended as a whole at the time limit.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
