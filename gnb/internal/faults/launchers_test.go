//go:build linux

package faults

import (
	"os/exec"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The test tries all faults in ranks that mpirun starts on one machine.
func TestFaultsUnderMPIRun(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for seconds")
	if withMounts(t, 4) {
		return
	}
	m := clustertest.OpenMPI(t)
	r := Ranks{
		Name: "mpirun",
		Command: func(_ *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
			return m.Run(2, exe, "-test.run=^$"), nil
		},
		Cases: func(c Case) bool {
			return !c.cuts() && (c.Victim != Launcher || c.Fault == Kill || c.Fault == Stop)
		},
		Ended: true,
	}
	r.document(t, r.matrix(t))
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
		Cases: func(c Case) bool { return c.cuts() && c.Victim != Launcher },
		Ended: true,
		Waits: true,
	}
	r.matrix(t)
}

// The test tries all faults in the ranks of two hosts that are connected by a network.
func TestFaultsOnTwoHosts(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for seconds")
	if withMounts(t, 8) {
		return
	}
	r := Ranks{
		Name: "two hosts",
		Command: func(t *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
			w := clustertest.Hosts(t, 2)
			return w.Torchrun([]int{1, 1}, exe, "-test.run=^$"), w.Hosts
		},
		Cases: func(c Case) bool { return c.Victim != Launcher },
		Ended: true,
	}
	r.document(t, r.matrix(t))
}
