package gnb

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// sendEvery bounds how often events leave a worker: often enough for a panel at 20 frames a second, seldom enough to
// cost nothing at 1000 steps a second.
const sendEvery = 40 * time.Millisecond

// mostWaiting bounds the delayed bytes.
const mostWaiting = 1 << 20

// outbox sends a worker's events to the process that launched it, and writes rank 0's metrics to the run's file. It delays
// events for up to 40 ms, because an epoch of a small graph takes less time than writing its events one by one and waking
// their readers. Any goroutine may call its methods.
type outbox struct {
	emit    func(lines []byte) error // sends complete lines to the launcher
	dir     string                   // the run's directory
	metrics *atomicfile.Log          // the run's metrics; nil if this rank does not write them
	drawn   drawings

	mu      sync.Mutex
	records []runs.Step // steps to send as one event
	lines   []byte      // lines for the launcher, one event each
	rate    *runs.Event // the last runs.KindRate, which replaces earlier ones
	summed  []byte      // the lines that also go to the metrics
	sent    time.Time
	timer   *time.Timer // set while events wait
	failed  error       // error of a send by the timer, returned to the next caller
}

// open sets the destinations: emit sends events to the launcher, and metrics, unless nil, receives
// those that belong to the metrics of the run in directory dir.
func (o *outbox) open(emit func(lines []byte) error, dir string, metrics *atomicfile.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.emit, o.dir, o.metrics = emit, dir, metrics
}

// record keeps a step's record for sendRecords.
func (o *outbox) record(s runs.Step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, s)
}

// sendRecords sends the steps recorded since the last call as one event.
func (o *outbox) sendRecords() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	records := o.records
	if o.records = nil; len(records) == 0 {
		return nil
	}
	return o.sendLocked(runs.Event{Kind: runs.KindSteps, Records: records})
}

// send sends a rare event at once, together with all waiting events, and other events within
// [sendEvery]. The rank that writes checkpoints also writes metrics, before it sends them to the
// launcher: a kill of the launching process must not lose metrics of steps that are in a
// checkpoint, because a resumed run does not report them again.
func (o *outbox) send(e runs.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sendLocked(e)
}

// sendLocked is send; the caller holds mu.
func (o *outbox) sendLocked(e runs.Event) error {
	var line []byte
	if e.Kind != runs.KindRate {
		e.Time = float64(time.Now().UnixMilli()) / 1e3
		var err error
		if line, err = encodeEvent(e); err != nil {
			return err
		}
	}
	if o.failed != nil {
		return o.failed
	}
	waits := true
	switch e.Kind {
	case runs.KindRate:
		o.rate = &e
	case runs.KindSteps, runs.KindEpoch, runs.KindMetrics, runs.KindMetric, runs.KindLog, runs.KindDrawn:
		if o.metrics != nil {
			o.summed = runfile.AppendLine(o.summed, line)
		}
		o.lines = append(o.lines, line...)
	default:
		waits = e.Kind == runs.KindLoop || e.Kind == runs.KindProgress
		o.lines = append(o.lines, line...)
	}
	now := time.Now()
	if !waits || now.Sub(o.sent) >= sendEvery || len(o.lines) > mostWaiting {
		return o.sendAll()
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(sendEvery-now.Sub(o.sent), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err := o.sendAll(); err != nil {
				o.failed = err
			}
		})
	}
	return nil
}

// encodeEvent returns an event as a line of JSON.
func encodeEvent(e runs.Event) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("gnb: encoding an event: %w", err)
	}
	return append(line, '\n'), nil
}

// sync sends all waiting events and makes the metrics durable.
func (o *outbox) sync() error {
	if err := errors.Join(o.sendRecords(), o.sendLater()); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.sendAll(); err != nil || o.metrics == nil {
		return err
	}
	if !o.metrics.There() {
		return runfile.Removed(o.dir)
	}
	if err := o.metrics.Sync(); err != nil {
		return fmt.Errorf("gnb: writing the run's metrics: %w; make room, and resume the run", err)
	}
	return nil
}

// sendAll sends all waiting events; the caller holds mu.
func (o *outbox) sendAll() error {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if o.failed != nil {
		return o.failed
	}
	o.sent = time.Now()
	if len(o.summed) > 0 {
		if !o.metrics.There() {
			return runfile.Removed(o.dir)
		}
		if _, err := o.metrics.Write(o.summed); err != nil {
			return fmt.Errorf("gnb: writing the run's metrics: %w; make room, and resume the run", err)
		}
		o.summed = o.summed[:0]
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
	err := o.emit(o.lines)
	o.lines = o.lines[:0]
	return err
}
