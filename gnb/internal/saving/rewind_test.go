package saving

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu"
)

// A restart with fewer workers keeps the total numbers of virtual ranks and of threads, and no
// worker takes the GPU of the failed rank.
func TestRestartOnFewerWorkers(t *testing.T) {
	for failed := range 4 {
		for _, workers := range []int{4, 2, 1} {
			r := &runs.Run{Config: runs.Config{Workers: 4, VirtualRanks: 2, Threads: 3}}
			from, e, err := Restart(r, &multigpu.WorkerError{Rank: failed, Epoch: 1, Step: 7, Stage: "forward", Reason: "it was killed"}, workers, false)
			if err != nil {
				t.Fatal(err)
			}
			c := r.Config
			if c.Workers != workers || c.Workers*c.VirtualRanks != 8 || c.Workers*c.Threads != 12 || len(c.Restarts) != 1 {
				t.Errorf("%d workers × %d virtual ranks, %d threads each, restarts %v", c.Workers, c.VirtualRanks, c.Threads, c.Restarts)
			}
			if last := from.SkipGPUs + workers; last > 4 || workers < 4 && from.SkipGPUs <= failed && failed < last {
				t.Errorf("rank %d failed, but %d workers take the GPUs from %d on", failed, workers, from.SkipGPUs)
			}
			if e.Restart == nil || e.Restart.Rank != failed || e.Restart.Workers != workers || e.Restart.Stage != "forward" || e.Text == "" {
				t.Errorf("event %+v", e)
			}
		}
	}
}
