package recorder

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// A panel says where the job is until the run trains, and then no longer.
func TestQueueIsShownUntilTheRunTrains(t *testing.T) {
	a, p := &asking{job: &cluster.Job{ID: "7"}}, &panel{}
	p.snap.State = screen.Starting
	waits := cluster.JobState{Name: "PENDING", Why: "Priority"}
	for _, c := range []struct {
		known bool
		job   cluster.JobState
		event runs.Event
		want  string
	}{
		{false, cluster.JobState{}, runs.Event{}, "job 7 of Slurm"},
		{true, waits, runs.Event{}, "job 7 waits in Slurm's queue (Priority)"},
		{true, waits, runs.Event{Kind: runs.KindSteps, Records: []runs.Step{{Loss: 1}}}, ""},
		{true, cluster.JobState{Name: "RUNNING", Nodes: "n1"}, runs.Event{Kind: runs.KindProgress, Text: "evaluating", Done: 1, Of: 4}, "evaluating: 1 of 4"},
	} {
		a.known, a.state = c.known, c.job
		p.apply(c.event)
		if a.show(p); p.snap.Detail != c.want {
			t.Errorf("%+v, %s: the panel shows %q, want %q", c.job, c.event.Kind, p.snap.Detail, c.want)
		}
	}
}
