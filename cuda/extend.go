package cuda

// This file is what packages beside this one build on: libraries that put work of their own on a
// device's streams.

// Submit has f put work on the stream, in the order of the commands: it runs on the device's goroutine,
// with the device's context and the stream as the driver knows it, and does not wait. It returns at once;
// a failure of f becomes the device's. op is what errors call it.
func (s *Stream) Submit(op string, f func(stream uintptr) error) {
	s.asked.Add(1)
	if s.d.trace != nil {
		s.d.trace.line("submit %s %s", s.Name, op)
	}
	s.put(func(c *command) { c.kind, c.stream, c.submit, c.op = doSubmit, s, f, op })
}

// Do has f called on the device's goroutine, with the device's context, and waits for it. The error is
// f's, as the device's Error; a Status after which a device is lost becomes the device's failure.
func (d *Device) Do(op string, f func() error) error { return d.do(op, f) }

// Outside calls f, which may block, on the caller's own thread with the device's context, while the
// device's goroutine goes on. A failure becomes the device's. Close does not wait for f.
func (d *Device) Outside(op string, f func() error) error {
	if err := d.Err(); err != nil {
		return err
	}
	return d.here(op, f)
}

// Fail makes err the device's failure, unless it had one before.
func (d *Device) Fail(op string, err error, detail string) { d.fail(d.fault(op, err, detail)) }

// Failed is the device's first failure, or nil; unlike Err it is nil for a device that was closed.
func (d *Device) Failed() error {
	if f := d.failed.Load(); f != nil {
		return f
	}
	return nil
}

// Drain waits on the device's goroutine for what was asked of all streams. It is for functions given to
// OnClose; others have [Stream.Sync].
func (d *Device) Drain() error {
	for _, s := range []*Stream{d.Compute, d.Copy, d.Sampling} {
		if err := d.drv.streamSync(s.h); err != nil {
			return d.fault("waiting for the "+s.Name+" stream", err, "")
		}
	}
	return nil
}

// OnClose has f called on the device's goroutine as the device is closed, before its memory is freed, the
// last one first.
func (d *Device) OnClose(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onClose = append(d.onClose, f)
}
