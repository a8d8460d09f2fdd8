//go:build cuda && linux && cgo

package shim

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// NotLoaded is the status of [Load] if there is no library to load.
const NotLoaded = -1

// Load loads the driver from a file or soname and initialises it. The status is that of cuInit, or
// [NotLoaded], and then why is the reason. A loaded driver stays loaded: loading it again does
// nothing.
func Load(library string) (status int, why string) {
	if f := loader.Load(); f != nil {
		return (*f)(library)
	}
	loading.Lock()
	defer loading.Unlock()
	if library == loaded {
		return 0, ""
	}
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	text := make([]byte, 512)
	status = int(C.gnb_load(name, (*C.char)(unsafe.Pointer(&text[0])), C.int(len(text))))
	if status == 0 {
		loaded = library
	}
	return status, C.GoString((*C.char)(unsafe.Pointer(&text[0])))
}

// loaded is the library whose functions are in the table; "" for none.
var (
	loading sync.Mutex
	loaded  string
)

// loader replaces loading in tests.
var loader atomic.Pointer[func(library string) (status int, why string)]

// SetLoader makes Load call f instead of loading a library; nil restores loading. Tests use it
// together with Set.
func SetLoader(f func(library string) (status int, why string)) {
	if f == nil {
		loader.Store(nil)
		return
	}
	loader.Store(&f)
}

// Set makes the C function fn the implementation of a driver call, such as "cuMemAlloc_v2"; nil
// removes it. Tests replace the driver with it. It must not be called concurrently with driver
// calls.
func Set(name string, fn unsafe.Pointer) error {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	if C.gnb_set(s, fn) != 0 {
		return fmt.Errorf("shim: the table has no call %q; declare it in include/cuda.h", name)
	}
	return nil
}

// Absent returns the last call requested that the loaded driver lacks, or "".
func Absent() string {
	if s := C.gnb_last_absent(); s != nil {
		return C.GoString(s)
	}
	return ""
}
