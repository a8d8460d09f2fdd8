package gnb

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
)

// outbox holds events back for up to flushEvery: an epoch of a small graph takes
// less time than to write its events one by one and to wake their readers. What
// is rare goes at once, and takes with it what came before.
type outbox struct {
	mu      sync.Mutex
	lines   []byte      // for the launcher, an event a line
	rate    *runs.Event // the last runs.KindRate, which makes those before it superfluous
	metrics []byte      // those of lines that belong into the run's metrics
	sent    time.Time
	timer   *time.Timer // set while something waits
	failed  error       // of a timer's flush, for the next caller
}

// send records what belongs into the run's metrics, from rank 0, and sends the
// event on. The record comes first, and from the rank that writes checkpoints: a
// kill of the launching process must not lose metrics of steps that a checkpoint
// holds, since a resumed run does not report them again. Any goroutine may call
// it; a line is in one write.
func (w *Worker) send(e runs.Event) error {
	var line []byte
	if e.Kind != runs.KindRate {
		e.Time = float64(time.Now().UnixMilli()) / 1e3
		var err error
		if line, err = encodeEvent(e); err != nil {
			return err
		}
	}
	o := &w.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return o.failed
	}
	waits := true
	switch e.Kind {
	case runs.KindRate:
		o.rate = &e
	case runs.KindSteps, runs.KindEpoch, runs.KindMetrics, runs.KindLog:
		if w.p.Rank == 0 && w.metrics != nil {
			o.metrics = runfile.AppendLine(o.metrics, line)
		}
		o.lines = append(o.lines, line...)
	default:
		waits = e.Kind == runs.KindLoop || e.Kind == runs.KindProgress
		o.lines = append(o.lines, line...)
	}
	now := time.Now()
	if !waits || now.Sub(o.sent) >= flushEvery || len(o.lines) > outboxBytes {
		return w.sendAll()
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(flushEvery-now.Sub(o.sent), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err := w.sendAll(); err != nil {
				o.failed = err
			}
		})
	}
	return nil
}

// encodeEvent is an event as a line.
func encodeEvent(e runs.Event) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("gnb: encoding an event: %w", err)
	}
	return append(line, '\n'), nil
}

// outboxBytes bounds what waits.
const outboxBytes = 1 << 20

// sendRest sends what waits. Any goroutine may call it.
func (w *Worker) sendRest() error {
	w.out.mu.Lock()
	defer w.out.mu.Unlock()
	return w.sendAll()
}

// sendAll sends what waits; the caller holds the outbox's mu.
func (w *Worker) sendAll() error {
	o := &w.out
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if o.failed != nil {
		return o.failed
	}
	o.sent = time.Now()
	if len(o.metrics) > 0 {
		if !w.metrics.There() {
			return runfile.Removed(w.job.RunDir)
		}
		if _, err := w.metrics.Write(o.metrics); err != nil {
			return fmt.Errorf("gnb: writing the run's metrics: %w; make room, and resume the run", err)
		}
		o.metrics = o.metrics[:0]
	}
	if o.rate != nil {
		line, err := encodeEvent(*o.rate)
		if err != nil {
			return err
		}
		o.lines, o.rate = append(o.lines, line...), nil
	}
	if len(o.lines) == 0 {
		return nil
	}
	err := w.p.EmitLines(o.lines)
	o.lines = o.lines[:0]
	return err
}
