package cuda

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is a sequence of work on a device. Work on one stream runs in the order of submission;
// streams run concurrently. The methods return at once unless documented otherwise. A failure is
// returned by [Device.Err] and by every method that waits.
type Stream struct {
	Name string // compute, copy or sampling

	d      *Device
	h      handle
	stage  stage
	laters laters
	asked  atomic.Int64 // number of launches and library calls
}

// Device returns the stream's device.
func (s *Stream) Device() *Device { return s.d }

// put submits the command that fill writes. It returns false on a closed device, whose Err gives
// the reason.
func (s *Stream) put(fill func(*command)) bool { return s.d.q.put(fill) }

// Copy copies n bytes on the device. The source and the destination must not overlap.
func (s *Stream) Copy(dst, src Ptr, n int64) {
	if n == 0 {
		return
	}
	s.put(func(c *command) { c.kind, c.stream, c.dst, c.src, c.n = doCopyDev, s, dst, src, n })
}

// Fill8 writes n bytes of value v.
func (s *Stream) Fill8(dst Ptr, v byte, n int64) {
	if n == 0 {
		return
	}
	s.put(func(c *command) { c.kind, c.stream, c.dst, c.value, c.n = doFill8, s, dst, uint32(v), n })
}

// Fill32 writes n 32-bit words of value v at dst, which must be aligned to four bytes.
func (s *Stream) Fill32(dst Ptr, v uint32, n int64) {
	if n == 0 {
		return
	}
	s.put(func(c *command) { c.kind, c.stream, c.dst, c.value, c.n = doFill32, s, dst, v, n })
}

// Sync waits until all work submitted to the stream so far is complete, and returns the device's
// failure, if any.
func (s *Stream) Sync() error {
	e, err := s.d.event()
	if err != nil {
		return err
	}
	defer s.d.reuse(e)
	s.Record(e)
	return e.Sync()
}

// Event is a point in a stream's work that others wait for. Each Record moves it.
type Event struct {
	d     *Device
	h     handle
	timed bool

	mu        sync.Mutex
	moved     sync.Cond
	asked, at int64   // records requested, and records that the driver has
	of        *Stream // the stream of the last record
	after     int64   // the number of the stream's launches at that time
}

func newEvent(d *Device, h handle, timed bool) *Event {
	e := &Event{d: d, h: h, timed: timed}
	e.moved.L = &e.mu
	return e
}

// Event makes an event. It lives as long as the device. timed events can be measured by [Event.Since].
func (d *Device) Event(timed bool) (*Event, error) {
	var h handle
	err := d.do("making an event", func() (err error) {
		h, err = d.drv.event(timed)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, h)
	return newEvent(d, h, timed), nil
}

// event returns an untimed event, a used one if there is one. reuse returns it for reuse once
// nothing waits for it.
func (d *Device) event() (*Event, error) {
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		e := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		return e, nil
	}
	d.mu.Unlock()
	return d.Event(false)
}

func (d *Device) reuse(e *Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, e)
}

// Record moves e to the current end of the stream's work.
func (s *Stream) Record(e *Event) {
	e.mu.Lock()
	e.asked++
	n := e.asked
	e.of, e.after = s, s.asked.Load()
	e.mu.Unlock()
	if !s.put(func(c *command) { c.kind, c.stream, c.event, c.n = doRecord, s, e, n }) {
		e.submitted(n) // nobody waits for ever
	}
}

// Wait makes later work on the stream start after the last Record of e before this call.
func (s *Stream) Wait(e *Event) {
	s.put(func(c *command) { c.kind, c.stream, c.event = doWait, s, e })
}

// submitted records that the driver has the n-th record, or never will.
func (e *Event) submitted(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = max(e.at, n)
	e.moved.Broadcast()
}

// Sync waits until the device has reached e, and returns the device's failure if it has one. An event
// never recorded is reached.
func (e *Event) Sync() error {
	e.mu.Lock()
	if e.d.trace != nil && e.of != nil {
		e.d.trace.line("wait %s %d", e.of.Name, e.of.asked.Load()-e.after)
	}
	for n := e.asked; e.at < n; {
		e.moved.Wait()
	}
	e.mu.Unlock()
	return e.d.wait("waiting for the device", func() error { return e.d.drv.eventSync(e.h) })
}

// Done reports whether the device has reached e. It does not wait.
func (e *Event) Done() (bool, error) {
	e.mu.Lock()
	pending := e.at < e.asked
	e.mu.Unlock()
	if pending {
		return false, e.d.Err()
	}
	done := true
	err := e.d.wait("asking for an event", func() error {
		err := e.d.drv.eventQuery(e.h)
		if errors.Is(err, NotReady) {
			done, err = false, nil
		}
		return err
	})
	return done && err == nil, err
}

// Since returns the device's time between two timed events that have been reached.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms float64
	err := e.d.wait("measuring time", func() (err error) {
		ms, err = e.d.drv.eventElapsed(from.h, e.h)
		return err
	})
	return time.Duration(ms * float64(time.Millisecond)), err
}

// wait calls f, which may block, with the device's context on a thread of the calling goroutine, so
// that the device's goroutine continues.
func (d *Device) wait(op string, f func() error) error {
	if err := d.Err(); err != nil {
		return err
	}
	var err error
	if gone := d.alive(op, func() { err = d.here(op, f) }); gone != nil {
		return gone
	}
	return err
}

// alive calls f while the device's resources stay allocated; on a device that is released it fails
// without calling f. f must not wait for anything that needs alive.
func (d *Device) alive(op string, f func()) error {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.released {
		return d.fault(op, ErrClosed, "")
	}
	f()
	return nil
}

// here calls f with the device's context on the calling goroutine's thread.
func (d *Device) here(op string, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := d.drv.current(d.ctx)
	if err == nil {
		err = f()
	}
	if err != nil {
		e := d.fault(op, err, "")
		d.explain(e)
		d.fail(e)
	}
	return d.Err()
}
