package store

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// Place is the location of data that a device uses.
type Place int

// The places.
const (
	Auto   Place = iota // chosen by the free memory
	Device              // in the device's memory, all of it
	Cached              // the rows used most in the device's memory, the others in pinned memory of the host
	Pinned              // in pinned memory of the host, which kernels read
	Staged              // in the host's memory, copied to the device when needed
)

func (p Place) String() string {
	switch p {
	case Auto:
		return "where there is room"
	case Device:
		return "on the device"
	case Cached:
		return "partly on the device"
	case Pinned:
		return "in pinned host memory"
	case Staged:
		return "in host memory"
	}
	return "at an unknown place"
}

// array is bytes that kernels read at ptr.
type array struct {
	ptr cuda.Ptr
	buf *cuda.Buffer
	pin *cuda.Pinned
	// giveBack subtracts the pinned bytes from the host's count; nil if nothing was counted.
	giveBack func()
}

func bytesOf[T int32 | int64 | float32 | uint16 | uint8](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// putAll calls put for the place. For Auto it tries the device, if n bytes fit there, and then
// pinned memory. It returns the place that succeeded.
func putAll(d *cuda.Device, what string, place Place, n int64, put func(Place) error) (Place, error) {
	if place != Auto && place != Device && place != Pinned {
		return place, fmt.Errorf("store: %s on the device or in pinned memory, not %s", what, place)
	}
	at := place
	if place == Auto {
		at = Pinned
		if n <= free(d) {
			at = Device
		}
	}
	err := put(at)
	if place == Auto && at == Device && errors.Is(err, cuda.OutOfMemory) {
		at = Pinned // another process has taken the free memory
		err = put(at)
	}
	if err != nil {
		return at, fmt.Errorf("store: putting what lies %s: %w", at, err)
	}
	return at, nil
}

// mapping describes where bytes are in the host's memory, and whether they may be pinned in place.
type mapping struct {
	mapped   bool // in a mapped file; see [FeatureOptions]
	resident bool // the file is in memory
	host     *Host
}

// put puts bytes on the device or into pinned memory.
func put(d *cuda.Device, use cuda.Use, b []byte, place Place, m mapping) (*array, error) {
	if place == Device {
		buf, err := d.Compute.Alloc(use, int64(len(b)))
		if err != nil {
			return nil, err
		}
		if err := cuda.CopyIn(d.Compute, buf.Ptr, b); err != nil {
			buf.Free()
			return nil, err
		}
		// Every stream may read it from now on, without events.
		return &array{ptr: buf.Ptr, buf: buf}, d.Compute.Sync()
	}
	if m.mapped {
		kind := filePages
		if m.resident {
			kind = heldPages
		}
		if err := m.host.take(int64(len(b)), kind); err != nil {
			return nil, err // there is no room for a copy either
		}
		if a := register(d, b); a != nil {
			a.giveBack = func() { m.host.note(-int64(len(b)), kind) }
			return a, nil
		}
		m.host.note(-int64(len(b)), kind)
	}
	a, err := pinCopy(d, int64(len(b)), m.host)
	if err != nil {
		return nil, err
	}
	copy(a.pin.Bytes, b)
	return a, nil
}

// pinCopy returns n bytes of pinned memory, if the host has that much.
func pinCopy(d *cuda.Device, n int64, h *Host) (*array, error) {
	if err := h.take(n, ownPages); err != nil {
		return nil, err
	}
	pin, err := d.Pin(n)
	if err != nil {
		h.note(-n, ownPages)
		return nil, err
	}
	return &array{ptr: pin.Ptr, pin: pin, giveBack: func() { h.note(-n, ownPages) }}, nil
}

// register pins memory of a mapped file in place, or returns nil if the device cannot. It pins
// whole pages, of which a mapping always consists.
func register(d *cuda.Device, b []byte) *array {
	info := d.Info()
	if !info.ReadOnlyOK || !info.HostReads {
		return nil
	}
	page := uintptr(os.Getpagesize())
	first := uintptr(unsafe.Pointer(&b[0]))
	before := first % page
	whole := (before + uintptr(len(b)) + page - 1) / page * page
	start := unsafe.Add(unsafe.Pointer(&b[0]), -int(before))
	pin, err := d.Register(unsafe.Slice((*byte)(start), whole), true)
	if err != nil {
		return nil // a copy serves as well
	}
	return &array{ptr: pin.Ptr + cuda.Ptr(before), pin: pin}
}

func (a *array) close() error {
	if a.buf != nil {
		a.buf.Free()
	}
	if a.giveBack != nil {
		a.giveBack()
		a.giveBack = nil
	}
	if a.pin != nil {
		return a.pin.Free()
	}
	return nil
}

// free returns the number of bytes of data for which the device has room.
func free(d *cuda.Device) int64 {
	m := d.Memory()
	held := int64(0)
	for _, n := range m.Held {
		held += n
	}
	return int64(sizes.Data*float64(m.Limit)) - held
}
