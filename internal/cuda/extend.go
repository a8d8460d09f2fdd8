package cuda

// This file is for packages that submit their own work to a device's streams, such as libraries.

// Submit calls f on the device's goroutine, in the order of the commands, with the device's context
// and the driver's handle of the stream. f submits work and must not wait. Submit returns at once;
// an error of f becomes the device's failure. op names the operation in errors.
func (s *Stream) Submit(op string, f func(stream uintptr) error) {
	s.asked.Add(1)
	if s.d.trace != nil {
		s.d.trace.line("submit %s %s", s.Name, op)
	}
	s.put(func(c *command) { c.kind, c.stream, c.submit, c.op = doSubmit, s, f, op })
}

// Do calls f on the device's goroutine, with the device's context, and waits for it. It returns f's
// error as an Error of the device; a Status that means a lost device becomes the device's failure.
func (d *Device) Do(op string, f func() error) error { return d.do(op, f) }

// Outside calls f, which may block, on the caller's thread with the device's context, while the
// device's goroutine continues. An error becomes the device's failure. Close does not wait for f.
func (d *Device) Outside(op string, f func() error) error {
	if err := d.Err(); err != nil {
		return err
	}
	return d.here(op, f)
}

// Fail makes err the device's failure, unless it had one before.
func (d *Device) Fail(op string, err error, detail string) { d.fail(d.fault(op, err, detail)) }

// Failed returns the device's first failure, or nil. Unlike Err it returns nil for a closed device.
func (d *Device) Failed() error {
	if f := d.failed.Load(); f != nil {
		return f
	}
	return nil
}

// Drain waits on the device's goroutine for all streams. It is for functions passed to OnClose;
// other code uses [Stream.Sync].
func (d *Device) Drain() error {
	for _, s := range []*Stream{d.Compute, d.Copy, d.Sampling} {
		if err := d.drv.streamSync(s.h); err != nil {
			return d.fault("waiting for the "+s.Name+" stream", err, "")
		}
	}
	return nil
}

// OnClose registers f to be called on the device's goroutine when the device is closed, before its
// memory is freed. The function registered last is called first.
func (d *Device) OnClose(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onClose = append(d.onClose, f)
}
