//go:build cuda && linux && cgo

package shim

// #include <stdlib.h>
// #include "need.h"
import "C"

import "unsafe"

// The calls that gorgonia.org/cu lacks. Each returns the driver's result, 0 for success.

// HostAlloc allocates n bytes of pinned host memory that every context may use.
func HostAlloc(n int64) (p unsafe.Pointer, result int) {
	result = int(C.cuMemHostAlloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE|C.CU_MEMHOSTALLOC_DEVICEMAP))
	return p, result
}

// HostRegister pins n bytes of host memory at p and lets devices read them; readOnly is for memory
// that this process cannot write either.
func HostRegister(p unsafe.Pointer, n int64, readOnly bool) int {
	flags := C.CU_MEMHOSTREGISTER_PORTABLE | C.CU_MEMHOSTREGISTER_DEVICEMAP
	if readOnly {
		flags |= C.CU_MEMHOSTREGISTER_READ_ONLY
	}
	return int(C.cuMemHostRegister(p, C.size_t(n), C.uint(flags)))
}

// HostUnregister undoes HostRegister.
func HostUnregister(p unsafe.Pointer) int { return int(C.cuMemHostUnregister(p)) }

// HostPointer returns the address that kernels use for pinned or registered memory at p.
func HostPointer(p unsafe.Pointer) (address uint64, result int) {
	var d C.CUdeviceptr
	result = int(C.cuMemHostGetDevicePointer(&d, p, 0))
	return uint64(d), result
}

// MaxShared allows a kernel, a CUfunction, n bytes of dynamic shared memory.
func MaxShared(fn unsafe.Pointer, n int) int {
	return int(C.cuFuncSetAttribute(C.CUfunction(fn), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(n)))
}

// LoadPTX compiles PTX for the current context's device; log is the compiler's error output.
func LoadPTX(ptx string) (mod unsafe.Pointer, log string, result int) {
	const size = 4096
	text := C.CString(ptx)
	defer C.free(unsafe.Pointer(text))
	buf := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(buf))
	// The values are in C memory, because memory passed to C must not contain Go pointers.
	options := (*[2]C.CUjit_option)(C.malloc(2 * C.sizeof_CUjit_option))
	defer C.free(unsafe.Pointer(options))
	values := (*[2]unsafe.Pointer)(C.malloc(2 * C.sizeof_size_t))
	defer C.free(unsafe.Pointer(values))
	options[0], values[0] = C.CU_JIT_ERROR_LOG_BUFFER, unsafe.Pointer(buf)
	options[1] = C.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
	*(*uintptr)(unsafe.Pointer(&values[1])) = size
	var m C.CUmodule
	result = int(C.cuModuleLoadDataEx(&m, unsafe.Pointer(text), 2, &options[0], &values[0]))
	return unsafe.Pointer(m), C.GoString(buf), result
}
