package runs

import (
	"time"
)

// task is something long that a worker reports the progress of, [Worker.Progress].
type task struct {
	name  string
	start time.Time // of its first report, at which so much was done
	from  int64
	last  int64
}

// left is the time that the task still takes at its pace so far, 0 where that is not
// known.
func (t *task) left(e Event, now time.Time) time.Duration {
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
