//go:build cuda && linux && cgo

package cuda

// The host linker is given the flags of this package before those of its imports. gorgonia.org/cu asks for
// -lcuda, and looks for it in the system's folders: the shim's empty one is to be found first, and a real one
// not to become a library that every program needs to start.

// #cgo LDFLAGS: -Wl,--as-needed -L${SRCDIR}/internal/shim/lib
import "C"
