//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// alone has a program be the first of a group of processes, which ends with it where its time is over.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
