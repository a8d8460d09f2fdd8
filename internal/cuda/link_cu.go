//go:build cuda && linux && cgo

package cuda

// The host linker gets this package's flags before those of its imports. gorgonia.org/cu asks for
// -lcuda and the linker searches the system's folders for it. It must find the shim's empty library
// first, and a real one must not become a library that every program needs to start.

// #cgo LDFLAGS: -Wl,--as-needed -L${SRCDIR}/internal/shim/lib
import "C"
