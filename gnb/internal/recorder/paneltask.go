package recorder

import (
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
)

// task is a long operation whose progress a worker reports with gnb.Worker.Progress.
type task struct {
	name  string
	start time.Time // time of the first report, and the amount done then
	from  int64
	last  int64
}

// left returns the task's remaining time at its pace so far, 0 if unknown.
func (t *task) left(e runs.Event, now time.Time) time.Duration {
	if e.Text != t.name || e.Done < t.last {
		*t = task{name: e.Text, start: now, from: e.Done}
	}
	t.last = e.Done
	done := e.Done - t.from
	if done <= 0 || e.Of <= e.Done {
		return 0
	}
	return time.Duration(float64(now.Sub(t.start)) / float64(done) * float64(e.Of-e.Done))
}
