package cuda

import "errors"

// execute executes one command, on the device's goroutine.
func (d *Device) execute(c *command) {
	if c.kind == doCall {
		c.call.done <- d.executeCall(c.call)
		return
	}
	if d.failed.Load() != nil {
		if c.kind == doRecord {
			c.event.submitted(c.n)
		}
		return
	}
	err := d.submit(c)
	if err == nil && d.opts.Debug {
		err = d.finish(c.stream)
	}
	if err == nil {
		return
	}
	var typed *Error // of loading a kernel
	if errors.As(err, &typed) {
		d.fail(typed)
		return
	}
	op := c.op
	if op == "" {
		op = c.kind.String()
	}
	e := d.fault(op, err, "")
	if c.kind == doLaunch {
		e.Kernel = c.kernel.name
		e.Detail = "grid " + c.grid.String() + ", block " + c.block.String()
	}
	d.explain(e)
	d.fail(e)
}

func (d *Device) executeCall(c *call) error {
	if !c.always {
		if f := d.failed.Load(); f != nil {
			return f
		}
	}
	err := c.f()
	if err == nil {
		return nil
	}
	var typed *Error
	if errors.As(err, &typed) {
		return typed
	}
	e := d.fault(c.op, err, "")
	var s Status
	if errors.As(err, &s) && s.Lost() && !(c.own && s == Unknown) {
		d.explain(e)
		d.fail(e)
		return d.failed.Load()
	}
	return e
}

// submit makes the driver's call for a command.
func (d *Device) submit(c *command) error {
	switch c.kind {
	case doLaunch:
		if err := d.kernels.ready(d, c.kernel, c.shared); err != nil {
			return err
		}
		d.last = c.kernel
		if err := d.drv.launch(c.kernel.fn, c.grid, c.block, c.shared, c.stream.h, c.args[:c.nargs]); err != nil {
			return err
		}
		c.kernel.launches.Add(1)
		return nil
	case doCopyIn:
		return d.drv.copyIn(c.dst, c.host, c.n, c.stream.h)
	case doCopyOut:
		return d.drv.copyOut(c.host, c.src, c.n, c.stream.h)
	case doCopyDev:
		return d.drv.copyDev(c.dst, c.src, c.n, c.stream.h)
	case doFill32:
		return d.drv.fill32(c.dst, c.value, c.n, c.stream.h)
	case doFill8:
		return d.drv.fill8(c.dst, byte(c.value), c.n, c.stream.h)
	case doRecord:
		err := d.drv.eventRecord(c.event.h, c.stream.h)
		c.event.submitted(c.n)
		return err
	case doSubmit:
		return c.submit(uintptr(c.stream.h))
	case doWait:
		return d.drv.streamWait(c.stream.h, c.event.h)
	}
	panic("cuda: unknown command")
}

func (k kind) String() string {
	switch k {
	case doLaunch:
		return "launching"
	case doCopyIn:
		return "copying to the device"
	case doCopyOut:
		return "copying from the device"
	case doCopyDev:
		return "copying on the device"
	case doFill32, doFill8:
		return "filling memory"
	case doRecord:
		return "recording an event"
	case doWait:
		return "waiting for an event"
	}
	return "a call"
}

// finish waits for a stream on the device's goroutine.
func (d *Device) finish(s *Stream) error { return d.drv.streamSync(s.h) }

// explain adds details to a failure that an earlier kernel may have caused.
func (d *Device) explain(e *Error) {
	var s Status
	if !errors.As(e.Cause, &s) {
		return
	}
	if call := d.drv.absent(); s == NotFound && call != "" {
		e.Detail = "the driver has no " + call + ": update it"
	}
	if !s.Lost() || d.opts.Debug {
		return
	}
	if d.last != nil && e.Kernel == "" {
		e.Kernel = "(last launched: " + d.last.name + ")"
	}
	if e.Detail != "" {
		e.Detail += "; "
	}
	e.Detail += "an earlier kernel may be at fault (GNB_CUDA_DEBUG=1 names it), or the device was lost (see \"dmesg | grep Xid\")"
}
