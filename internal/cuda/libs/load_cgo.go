//go:build cuda && linux && cgo

package libs

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Load loads a file, or a library by its soname, and sets each pointer of table to the function of
// that name. A missing function is an error, unless its pointer is in optional. The library stays open
// until the process ends, because its threads and handlers would not survive unloading.
func Load(file string, table map[string]*unsafe.Pointer, optional ...*unsafe.Pointer) error {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	lib := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if lib == nil {
		return errors.New(C.GoString(C.dlerror()))
	}
next:
	for symbol, to := range table {
		s := C.CString(symbol)
		*to = C.dlsym(lib, s)
		C.free(unsafe.Pointer(s))
		if *to != nil {
			continue
		}
		for _, o := range optional {
			if o == to {
				continue next
			}
		}
		return fmt.Errorf("%s has no %s: it is of another version", file, symbol)
	}
	return nil
}
