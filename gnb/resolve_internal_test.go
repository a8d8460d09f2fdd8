package gnb

import (
	"runtime"
	"testing"

	"github.com/graphnb/graphnb/multigpu/cluster"
)

// A plan of a job on several machines is that of one of them, with its ranks and their threads.
func TestResolveCluster(t *testing.T) {
	for _, c := range []struct {
		batch                  cluster.Batch
		workers, here, threads int
	}{
		{cluster.Batch{Nodes: 3, RanksPerNode: 1}, 3, 1, runtime.GOMAXPROCS(0)},
		{cluster.Batch{Nodes: 2}, 2, 1, runtime.GOMAXPROCS(0)},
		{cluster.Batch{Nodes: 2, RanksPerNode: 2}, 4, 2, max(1, runtime.GOMAXPROCS(0)/2)},
	} {
		r, err := resolve(LaunchOptions{Cluster: c.batch, Device: "cpu"}, false, false)
		if err != nil || r.Workers != c.workers || r.Here != c.here || r.Threads != c.threads || r.GPU {
			t.Errorf("%+v: %d workers, %d here with %d threads, GPU %v (%v)", c.batch, r.Workers, r.Here, r.Threads, r.GPU, err)
		}
	}
	r, err := resolve(LaunchOptions{Cluster: cluster.Batch{Nodes: 2}, Device: "cpu", Threads: 7}, false, false)
	if err != nil || r.Threads != 7 {
		t.Errorf("%d threads, 7 asked for (%v)", r.Threads, err)
	}
}
