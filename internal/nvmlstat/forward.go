//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import "sync"

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "forward.h"
import "C"

// forward redirects go-nvml's calls to the driver's library: see forward.c.
var forward = sync.OnceFunc(func() { C.nvml_forward(library) })

// library is the file that go-nvml loads too.
var library = C.CString("libnvidia-ml.so.1")
