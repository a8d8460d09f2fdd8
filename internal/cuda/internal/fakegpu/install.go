//go:build cuda && linux && cgo

package fakegpu

// #include "glue.h"
import "C"

import (
	"unsafe"

	"github.com/graphnb/graphnb/internal/cuda/internal/shim"
)

// install puts every call of this driver in the table; the others are absent, as in an old driver.
func install() { each(func(i C.int) unsafe.Pointer { return C.fk_call(i) }) }

func uninstall() { each(func(C.int) unsafe.Pointer { return nil }) }

// Without removes one call, as in a driver that lacks it; back restores it.
func (d *Driver) Without(name string) (back func()) {
	d.notReal()
	set := func(take bool) {
		for i := range C.fk_len() {
			if C.GoString(C.fk_name(i)) == name {
				call := C.fk_call(i)
				if take {
					call = nil
				}
				if err := shim.Set(name, call); err != nil {
					panic(err)
				}
				return
			}
		}
		panic("fakegpu: there is no call " + name)
	}
	set(true)
	return func() { set(false) }
}

func each(call func(C.int) unsafe.Pointer) {
	for i := range C.fk_len() {
		if err := shim.Set(C.GoString(C.fk_name(i)), call(i)); err != nil {
			panic(err) // the list in glue.c and the table differ
		}
	}
}

// in returns the installed driver and the locked device of the thread's context; the status reports
// a thread without context, a failed device, or an injected fault.
func in(call string) (d *device, status int) {
	context := int(C.fk_current())
	dr := installed.Load()
	if dr == nil || context < 1 || context > len(dr.devices) {
		return nil, invalidContext
	}
	d = dr.devices[context-1]
	d.mu.Lock()
	if d.retained == 0 {
		d.mu.Unlock()
		return nil, invalidContext
	}
	if f := dr.injected(d.n, call, ""); f != nil {
		if f.Lost {
			d.sticky = f.Status
		}
		d.mu.Unlock()
		return nil, f.Status
	}
	d.follow()
	return d, d.sticky
}

// use calls f on the device of the thread's context; if the device has failed, use returns its
// status instead.
func use(call string, f func(d *device) int) C.int {
	d, status := in(call)
	if d == nil {
		return C.int(status)
	}
	defer d.mu.Unlock()
	if status == success {
		status = f(d)
	}
	return C.int(status)
}

// giveBack is use for calls that free objects, which a failed device executes too.
func giveBack(call string, f func(d *device) int) C.int {
	d, status := in(call)
	if d == nil {
		return C.int(status)
	}
	defer d.mu.Unlock()
	if s := f(d); status == success {
		status = s
	}
	return C.int(status)
}

//export fkCtxSetCurrent
func fkCtxSetCurrent(ctx unsafe.Pointer) C.int {
	C.fk_set_current(C.long(uintptr(ctx)))
	return success
}

//export fkCtxGetCurrent
func fkCtxGetCurrent(ctx *uintptr) C.int {
	*ctx = uintptr(C.fk_current())
	return success
}
