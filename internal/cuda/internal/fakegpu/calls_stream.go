//go:build cuda && linux && cgo

package fakegpu

import "C"

import (
	"slices"
	"unsafe"
)

// onStream puts the operation that make returns on the stream of a handle.
func onStream(call string, h unsafe.Pointer, make func(d *device) op) C.int {
	return use(call, func(d *device) int {
		s, ok := object[*stream](d.dr, uintptr(h))
		if !ok || s.d != d {
			return invalidHandle
		}
		d.put(s, make(d))
		return success
	})
}

//export fkStreamCreateWithPriority
func fkStreamCreateWithPriority(h *uintptr, flags C.uint, priority C.int) C.int {
	return use("cuStreamCreateWithPriority", func(d *device) int {
		s := &stream{d: d}
		d.streams = append(d.streams, s)
		*h = d.dr.add(s)
		return success
	})
}

//export fkStreamDestroy
func fkStreamDestroy(h unsafe.Pointer) C.int {
	return giveBack("cuStreamDestroy_v2", func(d *device) int {
		s, ok := object[*stream](d.dr, uintptr(h))
		if !ok || s.d != d {
			return invalidHandle
		}
		d.drain(s)
		d.streams = slices.DeleteFunc(d.streams, func(t *stream) bool { return t == s })
		d.dr.forget(uintptr(h))
		return success
	})
}

//export fkStreamSynchronize
func fkStreamSynchronize(h unsafe.Pointer) C.int {
	return use("cuStreamSynchronize", func(d *device) int {
		s, ok := object[*stream](d.dr, uintptr(h))
		if !ok || s.d != d {
			return invalidHandle
		}
		d.drain(s)
		return d.sticky
	})
}

//export fkStreamWaitEvent
func fkStreamWaitEvent(h, e unsafe.Pointer, flags C.uint) C.int {
	dr := installed.Load()
	return onStream("cuStreamWaitEvent", h, func(d *device) op {
		if e, ok := object[*event](dr, uintptr(e)); ok {
			return op{after: e.last} // as last recorded, or nothing if never recorded
		}
		return op{f: func() int { return invalidHandle }}
	})
}

//export fkEventCreate
func fkEventCreate(h *uintptr, flags C.uint) C.int {
	return use("cuEventCreate", func(d *device) int {
		*h = d.dr.add(&event{d: d})
		return success
	})
}

// withEvent calls f with the event of a handle.
func withEvent(call string, h unsafe.Pointer, f func(d *device, e *event) int) C.int {
	return use(call, func(d *device) int {
		e, ok := object[*event](d.dr, uintptr(h))
		if !ok || e.d != d {
			return invalidHandle
		}
		return f(d, e)
	})
}

//export fkEventDestroy
func fkEventDestroy(h unsafe.Pointer) C.int {
	return giveBack("cuEventDestroy_v2", func(d *device) int {
		if _, ok := object[*event](d.dr, uintptr(h)); !ok {
			return invalidHandle
		}
		d.dr.forget(uintptr(h))
		return success
	})
}

//export fkEventRecord
func fkEventRecord(h, s unsafe.Pointer) C.int {
	return withEvent("cuEventRecord", h, func(d *device, e *event) int {
		s, ok := object[*stream](d.dr, uintptr(s))
		if !ok || s.d != d {
			return invalidHandle
		}
		e.last = &record{s: s}
		d.put(s, op{reach: e.last})
		return success
	})
}

//export fkEventQuery
func fkEventQuery(h unsafe.Pointer) C.int {
	return withEvent("cuEventQuery", h, func(d *device, e *event) int {
		if e.last == nil || e.last.done {
			return d.sticky
		}
		d.step(e.last.s) // repeated queries make progress
		if d.sticky != success {
			return d.sticky
		}
		return notReady
	})
}

//export fkEventSynchronize
func fkEventSynchronize(h unsafe.Pointer) C.int {
	return withEvent("cuEventSynchronize", h, func(d *device, e *event) int {
		if e.last != nil {
			d.reach(e.last)
		}
		return d.sticky
	})
}

//export fkEventElapsedTime
func fkEventElapsedTime(ms *C.float, from, to unsafe.Pointer) C.int {
	return withEvent("cuEventElapsedTime", from, func(d *device, a *event) int {
		b, ok := object[*event](d.dr, uintptr(to))
		switch {
		case !ok || a.last == nil || b.last == nil:
			return invalidHandle
		case !a.last.done || !b.last.done:
			return notReady
		}
		*ms = C.float(b.last.at - a.last.at) // the simulated time: a millisecond per operation
		return success
	})
}
