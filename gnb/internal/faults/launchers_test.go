//go:build linux

package faults

import (
	"os/exec"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

var underMPIRun = Ranks{
	Name: "mpirun",
	Command: func(t *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
		return clustertest.OpenMPI(t).Run(2, exe, "-test.run=^$"), nil
	},
	Cases: func(c Case) bool {
		return !c.cuts() && (c.Victim != Launcher || c.Fault == Kill || c.Fault == Stop || c.Fault == Panic)
	},
	Ended: true,
}

// The test tries all faults in ranks that mpirun starts on one machine.
func TestFaultsUnderMPIRun(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for seconds")
	if withMounts(t, 4) {
		return
	}
	clustertest.OpenMPI(t) // the test needs it also where its cases do not run in parallel
	underMPIRun.document(t, underMPIRun.matrix(t))
}

// The network between two hosts is cut under mpirun, whose own daemons lose their connection too.
// The ranks end nevertheless; mpirun waits for its daemon until the network is back.
func TestCutsUnderMPIRunOnTwoHosts(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for seconds")
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "mpirun waits for its daemons for tens of seconds")
	}
	if withMounts(t, 8) {
		return
	}
	m := clustertest.OpenMPI(t)
	r := Ranks{
		Name: "mpirun on two hosts",
		Command: func(t *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
			w := clustertest.Hosts(t, 2)
			cmd := m.RunOn(w, 1, exe, "-test.run=^$")
			cmd.Env = append(cmd.Env, "GNB_TOKEN=a secret of these tests", "GNB_RENDEZVOUS="+w.Hosts[0].Addr+":29500")
			return cmd, w.Hosts
		},
		Cases: func(c Case) bool {
			return c.cuts() && c.Victim != Launcher || c.Victim == Launcher && (c.Fault == Kill || c.Fault == Stop || c.Fault == Panic)
		},
		Ended: true,
		Waits: true,
	}
	r.matrix(t)
}

var onTwoHosts = Ranks{
	Name: "two hosts",
	Command: func(t *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
		w := clustertest.Hosts(t, 2)
		return w.Torchrun([]int{1, 1}, exe, "-test.run=^$"), w.Hosts
	},
	Cases: func(c Case) bool { return c.Victim != Launcher },
	Ended: true,
}

// The test tries all faults in the ranks of two hosts that are connected by a network.
func TestFaultsOnTwoHosts(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for seconds")
	if withMounts(t, 8) {
		return
	}
	onTwoHosts.document(t, onTwoHosts.matrix(t))
}
