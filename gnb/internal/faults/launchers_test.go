//go:build linux

package faults

import (
	"os/exec"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
)

// All faults in the ranks that mpirun starts on one machine.
func TestFaultsUnderMPIRun(t *testing.T) {
	if withMounts(t) {
		return
	}
	m := clustertest.OpenMPI(t)
	r := Ranks{
		Name:    "mpirun",
		Command: func(exe string) *exec.Cmd { return m.Run(2, exe, "-test.run=^$") },
		Cases: func(c Case) bool {
			return c.Victim != Launcher || c.Fault == Kill || c.Fault == Stop
		},
		Ended: true,
	}
	r.document(t, r.matrix(t))
}

// All faults in the ranks of two hosts that a network joins.
func TestFaultsOnTwoHosts(t *testing.T) {
	if withMounts(t) {
		return
	}
	r := Ranks{
		Name: "two hosts",
		Command: func(exe string) *exec.Cmd {
			return clustertest.Hosts(t, 2).Torchrun([]int{1, 1}, exe, "-test.run=^$")
		},
		Cases: func(c Case) bool { return c.Victim != Launcher },
		Ended: true,
	}
	r.matrix(t)
}
