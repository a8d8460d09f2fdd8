//go:build cuda && linux && cgo

package fakegpu

import "C"

import (
	"fmt"
	"unsafe"
)

//export fkDriverGetVersion
func fkDriverGetVersion(v *C.int) C.int {
	*v = C.int(installed.Load().c.Version)
	return success
}

//export fkDeviceGetCount
func fkDeviceGetCount(n *C.int) C.int {
	*n = C.int(len(installed.Load().devices))
	return success
}

// known returns the device of a number, or nil.
func known(i C.int) *device {
	if dr := installed.Load(); i >= 0 && int(i) < len(dr.devices) {
		return dr.devices[i]
	}
	return nil
}

//export fkDeviceGet
func fkDeviceGet(d *C.int, i C.int) C.int {
	if known(i) == nil {
		return invalidDevice
	}
	*d = i
	return success
}

//export fkDeviceGetName
func fkDeviceGetName(s *C.char, n C.int, d C.int) C.int {
	if known(d) == nil {
		return invalidDevice
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), n)
	b[copy(b[:n-1], "PTX interpreter")] = 0
	return success
}

//export fkDeviceGetUuid
func fkDeviceGetUuid(u unsafe.Pointer, d C.int) C.int {
	if known(d) == nil {
		return invalidDevice
	}
	copy(unsafe.Slice((*byte)(u), 16), fmt.Sprintf("interpreter %4d", int(d)))
	return success
}

//export fkDeviceTotalMem
func fkDeviceTotalMem(n *C.size_t, d C.int) C.int {
	if known(d) == nil {
		return invalidDevice
	}
	*n = C.size_t(installed.Load().c.Memory)
	return success
}

//export fkDeviceGetAttribute
func fkDeviceGetAttribute(v *C.int, a, d C.int) C.int {
	if known(d) == nil {
		return invalidDevice
	}
	c := installed.Load().c.Capability
	switch a {
	case 10: // warp size
		*v = 32
	case 16: // multiprocessors: few, so that small grids have many blocks per multiprocessor
		*v = 2
	case 75:
		*v = C.int(c / 10)
	case 76:
		*v = C.int(c % 10)
	case 91, 113: // kernels use registered memory at its own address, and read-only mappings
		*v = 1
	case 97:
		*v = 96 << 10
	default:
		return invalidValue
	}
	return success
}

//export fkPrimaryCtxRetain
func fkPrimaryCtxRetain(ctx *uintptr, i C.int) C.int {
	d := known(i)
	if d == nil {
		return invalidDevice
	}
	if f := d.dr.injected(d.n, "cuDevicePrimaryCtxRetain", ""); f != nil {
		return C.int(f.Status)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retained++
	*ctx = uintptr(i) + 1
	return success
}

//export fkPrimaryCtxRelease
func fkPrimaryCtxRelease(i C.int) C.int {
	d := known(i)
	if d == nil {
		return invalidDevice
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return C.int(d.release())
}

//export fkCtxSynchronize
func fkCtxSynchronize() C.int {
	return use("cuCtxSynchronize", func(d *device) int {
		d.drainAll()
		return d.sticky
	})
}

//export fkCtxGetStreamPriorityRange
func fkCtxGetStreamPriorityRange(least, greatest *C.int) C.int {
	return use("cuCtxGetStreamPriorityRange", func(*device) int {
		*least, *greatest = 0, -5
		return success
	})
}
