// Package outbox sends what a worker reports to the process that launched it, and rank 0's metrics to the run's
// file. It holds events back for up to 40 ms: an epoch of a small graph takes less time than to write its events
// one by one and to wake their readers.
package outbox

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Every bounds how often events leave a worker: often enough for a panel at 20 frames a second, seldom enough to
// cost nothing at 1000 steps a second.
const Every = 40 * time.Millisecond

// mostBytes bounds what waits.
const mostBytes = 1 << 20

// Outbox is a worker's. Any goroutine may call its methods.
type Outbox struct {
	emit    func(lines []byte) error // to the launcher, whole lines
	dir     string                   // the run's directory
	metrics *atomicfile.Log          // of the run; nil where this rank does not write it

	mu      sync.Mutex
	records []runs.Step // to be sent as one event
	lines   []byte      // for the launcher, an event a line
	rate    *runs.Event // the last runs.KindRate, which makes those before it superfluous
	summed  []byte      // those of lines that belong into the metrics
	sent    time.Time
	timer   *time.Timer // set while something waits
	failed  error       // of a timer's sending, for the next caller
}

// Open says where events go: to the launcher, by emit, and those that belong into the metrics of the run in the
// directory dir to metrics, unless that is nil.
func (o *Outbox) Open(emit func(lines []byte) error, dir string, metrics *atomicfile.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.emit, o.dir, o.metrics = emit, dir, metrics
}

// Record keeps a step's record for SendRecords.
func (o *Outbox) Record(s runs.Step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, s)
}

// SendRecords sends the steps recorded since the last call as one event.
func (o *Outbox) SendRecords() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	records := o.records
	if o.records = nil; len(records) == 0 {
		return nil
	}
	return o.send(runs.Event{Kind: runs.KindSteps, Records: records})
}

// Send sends an event: at once with all that waits, where it is rare, else within [Every]. Metrics are written
// before the launcher is told, and by the rank that writes checkpoints: a kill of the launching process must not
// lose metrics of steps that a checkpoint holds, since a resumed run does not report them again.
func (o *Outbox) Send(e runs.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.send(e)
}

// send is Send; the caller holds mu.
func (o *Outbox) send(e runs.Event) error {
	var line []byte
	if e.Kind != runs.KindRate {
		e.Time = float64(time.Now().UnixMilli()) / 1e3
		var err error
		if line, err = encode(e); err != nil {
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
	case runs.KindSteps, runs.KindEpoch, runs.KindMetrics, runs.KindLog:
		if o.metrics != nil {
			o.summed = runfile.AppendLine(o.summed, line)
		}
		o.lines = append(o.lines, line...)
	default:
		waits = e.Kind == runs.KindLoop || e.Kind == runs.KindProgress
		o.lines = append(o.lines, line...)
	}
	now := time.Now()
	if !waits || now.Sub(o.sent) >= Every || len(o.lines) > mostBytes {
		return o.sendAll()
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(Every-now.Sub(o.sent), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err := o.sendAll(); err != nil {
				o.failed = err
			}
		})
	}
	return nil
}

// encode is an event as a line.
func encode(e runs.Event) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("gnb: encoding an event: %w", err)
	}
	return append(line, '\n'), nil
}

// Sync sends all that waits and makes the metrics durable.
func (o *Outbox) Sync() error {
	if err := o.SendRecords(); err != nil {
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

// sendAll sends what waits; the caller holds mu.
func (o *Outbox) sendAll() error {
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
		line, err := encode(*o.rate)
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
