//go:build cuda && linux && cgo

package fakegpu

// #include <stdlib.h>
import "C"

import (
	"encoding/binary"
	"maps"
	"unsafe"
)

// hostRange is pinned or registered host memory.
type hostRange struct {
	n          int64
	readOnly   bool
	registered bool
	seq        int // sequence number among all ranges so far
}

func (h hostRange) bytes(at uintptr) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), h.n)
}

// pinned reports whether n bytes at p are pinned or registered.
func (d *Driver) pinned(p uintptr, n int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, h := range d.host {
		if p >= at && p+uintptr(n) <= at+uintptr(h.n) {
			return true
		}
	}
	return false
}

// share makes host memory visible to every device, and unshare revokes that. A device updates its
// mappings at its next use (see follow); share does not wait for devices, because one may be in a
// collective that waits for the caller.
func (d *Driver) share(at uintptr, h hostRange) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, o := range d.host {
		if at < other+uintptr(o.n) && other < at+uintptr(h.n) {
			return alreadyMapped
		}
	}
	d.hostSeq++
	h.seq = d.hostSeq
	d.host[at] = h
	return success
}

func (d *Driver) unshare(at uintptr, registered bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h, ok := d.host[at]; !ok || h.registered != registered {
		return notRegistered
	}
	d.hostSeq++
	delete(d.host, at)
	return success
}

// follow updates the device's memory to map exactly the host memory that is shared now.
func (d *device) follow() {
	d.dr.mu.Lock()
	now, seq := d.dr.host, d.dr.hostSeq
	if seq == d.hostSeq {
		d.dr.mu.Unlock()
		return
	}
	now = maps.Clone(now)
	d.dr.mu.Unlock()
	d.hostSeq = seq
	for at, h := range d.mapped {
		if now[at] != h {
			if err := d.mem.Unmap(uint64(at)); err != nil {
				panic(err) // it was mapped below
			}
			delete(d.mapped, at)
		}
	}
	for at, h := range now {
		if d.mapped[at] != h {
			if _, err := d.mem.Map(h.bytes(at), h.readOnly); err != nil {
				panic(err) // mapped ranges never overlap
			}
			d.mapped[at] = h
		}
	}
}

//export fkMemGetInfo
func fkMemGetInfo(free, total *C.size_t) C.int {
	return use("cuMemGetInfo_v2", func(d *device) int {
		*free, *total = C.size_t(d.mem.Limit()-d.mem.Used()), C.size_t(d.mem.Limit())
		return success
	})
}

//export fkMemAlloc
func fkMemAlloc(p *C.ulonglong, n C.size_t) C.int {
	return use("cuMemAlloc_v2", func(d *device) int {
		if n == 0 {
			return invalidValue
		}
		at, err := d.mem.Alloc(int64(n))
		if err != nil {
			return outOfMemory
		}
		d.launched[logAllocations]++
		d.launched[logPeak] = max(d.launched[logPeak], int(d.mem.Used()))
		*p = C.ulonglong(at)
		return success
	})
}

//export fkMemFree
func fkMemFree(p C.ulonglong) C.int {
	return giveBack("cuMemFree_v2", func(d *device) int {
		d.drainAll()
		if err := d.mem.Free(uint64(p)); err != nil {
			return invalidValue
		}
		return success
	})
}

//export fkMemHostAlloc
func fkMemHostAlloc(p *uintptr, n C.size_t, flags C.uint) C.int {
	return use("cuMemHostAlloc", func(d *device) int {
		m := uintptr(C.calloc(1, n))
		*p = m
		return d.dr.share(m, hostRange{n: int64(n)})
	})
}

//export fkMemFreeHost
func fkMemFreeHost(p unsafe.Pointer) C.int {
	return giveBack("cuMemFreeHost", func(d *device) int {
		d.drainAll()
		status := d.dr.unshare(uintptr(p), false)
		if status == success {
			C.free(p)
		}
		return status
	})
}

//export fkMemHostRegister
func fkMemHostRegister(p unsafe.Pointer, n C.size_t, flags C.uint) C.int {
	return use("cuMemHostRegister_v2", func(d *device) int {
		const readOnly = 8
		return d.dr.share(uintptr(p), hostRange{n: int64(n), readOnly: flags&readOnly != 0, registered: true})
	})
}

//export fkMemHostUnregister
func fkMemHostUnregister(p unsafe.Pointer) C.int {
	return giveBack("cuMemHostUnregister", func(d *device) int {
		d.drainAll()
		return d.dr.unshare(uintptr(p), true)
	})
}

//export fkMemHostGetDevicePointer
func fkMemHostGetDevicePointer(at *C.ulonglong, p unsafe.Pointer, flags C.uint) C.int {
	return use("cuMemHostGetDevicePointer_v2", func(d *device) int {
		if !d.dr.pinned(uintptr(p), 1) {
			return invalidValue
		}
		*at = C.ulonglong(uintptr(p))
		return success
	})
}

//export fkMemcpyHtoDAsync
func fkMemcpyHtoDAsync(dst C.ulonglong, src unsafe.Pointer, n C.size_t, s unsafe.Pointer) C.int {
	return onStream("cuMemcpyHtoDAsync_v2", s, func(d *device) op {
		b := unsafe.Slice((*byte)(src), n)
		if !d.dr.pinned(uintptr(src), int64(n)) {
			b = append([]byte(nil), b...) // the driver has read ordinary memory when it returns
		}
		d.launched[logWritten] += int(n)
		return op{f: func() int { return d.check(d.mem.Write(uint64(dst), b)) }}
	})
}

//export fkMemcpyDtoHAsync
func fkMemcpyDtoHAsync(dst unsafe.Pointer, src C.ulonglong, n C.size_t, s unsafe.Pointer) C.int {
	b := unsafe.Slice((*byte)(dst), n)
	status := onStream("cuMemcpyDtoHAsync_v2", s, func(d *device) op {
		d.launched[logRead] += int(n)
		return op{f: func() int { return d.check(d.mem.Read(uint64(src), b)) }}
	})
	if status == success && !installed.Load().pinned(uintptr(dst), int64(n)) {
		return fkStreamSynchronize(s) // copies to pageable memory finish before the driver returns
	}
	return status
}

//export fkMemcpyDtoDAsync
func fkMemcpyDtoDAsync(dst, src C.ulonglong, n C.size_t, s unsafe.Pointer) C.int {
	return onStream("cuMemcpyDtoDAsync_v2", s, func(d *device) op {
		return op{f: func() int { return d.check(d.mem.Copy(uint64(dst), uint64(src), int64(n))) }}
	})
}

//export fkMemsetD8Async
func fkMemsetD8Async(dst C.ulonglong, v C.uchar, n C.size_t, s unsafe.Pointer) C.int {
	return onStream("cuMemsetD8Async", s, func(d *device) op {
		return op{f: func() int { return d.check(d.mem.Fill(uint64(dst), []byte{byte(v)}, int64(n))) }}
	})
}

//export fkMemsetD32Async
func fkMemsetD32Async(dst C.ulonglong, v C.uint, n C.size_t, s unsafe.Pointer) C.int {
	return onStream("cuMemsetD32Async", s, func(d *device) op {
		pattern := binary.LittleEndian.AppendUint32(nil, uint32(v))
		return op{f: func() int { return d.check(d.mem.Fill(uint64(dst), pattern, 4*int64(n))) }}
	})
}
