package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Torchrun returns the command that runs a program as ranks on the hosts, perHost[i] of them on host i, with the
// environment variables that torchrun sets. It ends with the status of rank 0 after all ranks have ended. A secret
// is in GNB_TOKEN.
func (w *Network) Torchrun(perHost []int, program string, args ...string) *exec.Cmd {
	w.t.Helper()
	world := 0
	for _, n := range perHost {
		world += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\nexport WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT=29500 GNB_TOKEN=%s\n", world, w.Hosts[0].Addr, strings.Repeat("token", 5))
	rank := 0
	for i, n := range perHost {
		for local := range n {
			fmt.Fprintf(&b, "RANK=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d %s \"$@\" &\n", rank, local, n, strings.Join(w.enter(w.Hosts[i].pid, nil).Args, " "))
			if rank == 0 {
				b.WriteString("first=$!\n")
			}
			rank++
		}
	}
	b.WriteString("wait $first\nstatus=$?\nwait\nexit $status\n")
	f, err := os.CreateTemp(w.Dir, "torchrun")
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = f.WriteString(b.String())
	if e := f.Close(); err != nil || e != nil {
		w.t.Fatal(err, e)
	}
	cmd := exec.Command("/bin/sh", append([]string{filepath.Join(w.Dir, filepath.Base(f.Name())), program}, args...)...)
	cmd.Env = append(os.Environ(), marker+"="+w.Dir)
	return cmd
}

// RealTorchrun returns the path of PyTorch's own torchrun, or skips the test.
func RealTorchrun(t testing.TB) string {
	t.Helper()
	for _, path := range []string{filepath.Join(testneed.ClusterDir(), "torch", "bin", "torchrun"), "torchrun"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	testneed.Skip(t, testneed.Cluster, "there is no torchrun on PATH or in .cluster/torch; a virtual environment there with the package torch has it")
	return ""
}
