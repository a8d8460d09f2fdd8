package clustertest

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a process that is not started yet into a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
