//go:build cuda && linux && cgo

package fakegpu

// typedef int (*fk_work)(int device, void *data);
// static int fk_run(fk_work work, int device, void *data) { return work(device, data); }
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// The functions that the test libraries of package fakelibs look up by name, as the real libraries
// look up the driver's calls.

//export fkEnqueue
func fkEnqueue(s unsafe.Pointer, work C.fk_work, data unsafe.Pointer) C.int {
	return onStream("", s, func(d *device) op {
		done := &record{}
		if s, ok := object[*stream](d.dr, uintptr(s)); ok {
			done.s = s
			go d.later(done)
		}
		return op{reach: done, f: func() int { return int(C.fk_run(work, C.int(d.n), data)) }}
	})
}

// later ensures that a library's work is eventually done even if only other processes wait for it:
// other ranks of a collective wait for this rank's work.
func (d *device) later(r *record) {
	time.Sleep(time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reach(r)
}

// fkBytes is called by the work function, while the device is locked. The memory does not move and
// is not freed while the work runs, so its address may be passed to C.
//
//export fkBytes
func fkBytes(device C.int, at C.ulonglong, n C.size_t, write C.int) C.size_t {
	d := installed.Load().devices[device]
	if write == 0 {
		if n == 0 {
			return 1
		}
		if err := d.mem.Read(uint64(at), make([]byte, n)); err != nil { // checks that all of it was written
			d.dr.noteFault(d.n, fmt.Errorf("a library reads: %w", err))
			return 0
		}
	}
	b, err := d.mem.Bytes(uint64(at), int64(n))
	if err != nil {
		d.dr.noteFault(d.n, fmt.Errorf("a library uses: %w", err))
		return 0
	}
	return C.size_t(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
