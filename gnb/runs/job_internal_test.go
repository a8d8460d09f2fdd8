package runs

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// A panel says where the job is until the run trains, and then no longer.
func TestQueueIsShownUntilTheRunTrains(t *testing.T) {
	a, p := &asking{job: &cluster.Job{ID: "7"}}, &panel{}
	p.snap.State = screen.Starting
	for _, c := range []struct {
		state  string
		known  bool
		job    cluster.JobState
		detail string // what else is shown
		want   string
	}{
		{screen.Starting, false, cluster.JobState{}, "", "job 7 of Slurm"},
		{screen.Starting, true, cluster.JobState{Name: "PENDING", Why: "Priority"}, "", "job 7 waits in Slurm's queue (Priority)"},
		{screen.Running, true, cluster.JobState{Name: "PENDING", Why: "Priority"}, "", ""},
		{screen.Running, true, cluster.JobState{Name: "RUNNING", Nodes: "n1"}, "evaluating", "evaluating"},
	} {
		p.snap.State, a.known, a.state = c.state, c.known, c.job
		if c.detail != "" {
			p.snap.Detail = c.detail
		}
		if a.show(p); p.snap.Detail != c.want {
			t.Errorf("%s, %+v: the panel shows %q, want %q", c.state, c.job, p.snap.Detail, c.want)
		}
	}
}
