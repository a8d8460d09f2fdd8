package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Pinned is host memory that the device can read and write directly: newly pinned memory, or
// registered existing memory. It belongs to the device; Free or the device's Close releases it.
type Pinned struct {
	Bytes []byte
	Ptr   Ptr // for kernels: zero copy

	d          *Device
	p          unsafe.Pointer // nil when given back
	registered bool
}

// Pin allocates n bytes of pinned host memory, n > 0. It costs about a millisecond per MB.
func (d *Device) Pin(n int64) (*Pinned, error) {
	if n <= 0 {
		return nil, d.fault("pinning host memory", InvalidValue, fmt.Sprintf("%d bytes", n))
	}
	h := &Pinned{d: d}
	err := d.doHost("pinning "+phrase.Bytes(n)+" of host memory", func() (err error) {
		if h.p, err = d.drv.hostAlloc(n); err != nil {
			return err
		}
		h.Ptr, err = d.drv.hostPtr(h.p)
		return d.keep(h, err)
	})
	if err != nil {
		return nil, d.lacksHost(err)
	}
	h.Bytes = unsafe.Slice((*byte)(h.p), n)
	return h, nil
}

// Register pins existing memory, such as a mapped file, so that kernels can read it at Ptr. The
// memory must be page-aligned and stay mapped until Free. Set readOnly for memory that this process
// cannot write; the device supports it if Info.ReadOnlyOK is true.
func (d *Device) Register(b []byte, readOnly bool) (*Pinned, error) {
	if len(b) == 0 {
		return nil, d.fault("registering host memory", InvalidValue, "it is empty")
	}
	if readOnly && !d.info.ReadOnlyOK {
		return nil, d.fault("registering a read-only mapping", NotSupported, "this device or driver does not support it; copy the data into pinned memory instead")
	}
	h := &Pinned{d: d, Bytes: b, registered: true}
	err := d.doHost("registering "+phrase.Bytes(int64(len(b)))+" of host memory", func() (err error) {
		p := unsafe.Pointer(&b[0])
		if err := d.drv.hostRegister(p, int64(len(b)), readOnly); err != nil {
			return err
		}
		h.p = p
		h.Ptr, err = d.drv.hostPtr(p)
		return d.keep(h, err)
	})
	if err != nil {
		return nil, d.lacksHost(err)
	}
	return h, nil
}

// doHost is do for calls about the host's memory. They also fail with Unknown if the kernel or a
// virtual machine refuses to pin such memory; the device then remains usable.
func (d *Device) doHost(op string, f func() error) error {
	return d.doCall(&call{op: op, f: f, own: true, done: make(chan error, 1)})
}

// keep records h for Close, or frees it if getting its address failed.
func (d *Device) keep(h *Pinned, err error) error {
	if err != nil {
		return errors.Join(err, h.giveBack(d.drv))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned[h] = true
	return nil
}

// lacksHost adds what to do if the host cannot pin memory.
func (d *Device) lacksHost(err error) error {
	var e *Error
	if errors.As(err, &e) && errors.Is(err, OutOfMemory) && e.Detail == "" {
		e.Detail = "the host cannot pin more memory; end other programs, raise the container's memory limit, or keep less data in pinned memory"
	}
	return err
}

// Free waits for the device and frees the memory. Freeing twice does nothing. On a failed device it
// frees what it can and returns no error.
func (h *Pinned) Free() error {
	c := &call{op: "giving back pinned memory", always: true, done: make(chan error, 1)}
	c.f = func() error {
		h.d.mu.Lock()
		delete(h.d.pinned, h)
		h.d.mu.Unlock()
		var err error
		for _, s := range []*Stream{h.d.Compute, h.d.Copy, h.d.Sampling} {
			err = errors.Join(err, h.d.drv.streamSync(s.h))
		}
		if err = errors.Join(err, h.giveBack(h.d.drv)); h.d.failed.Load() != nil {
			err = nil // the failure is reported elsewhere
		}
		return err
	}
	if err := h.d.doCall(c); !errors.Is(err, ErrClosed) { // Close has given it back
		return err
	}
	return nil
}

// giveBack frees the memory. It runs on the device's goroutine.
func (h *Pinned) giveBack(drv driver) error {
	p := h.p
	h.p, h.Bytes = nil, nil
	if p == nil {
		return nil
	}
	if h.registered {
		return drv.hostUnregister(p)
	}
	return drv.hostFree(p)
}
