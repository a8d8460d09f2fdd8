// Package nvmlstat reads NVIDIA's GPUs through NVML, the library that comes with the driver.
//
// Only the helper process "gnb monitor --helper" uses it (see package machine): it requires cgo,
// and a crash in the driver's library ends the process. In a program built without a C compiler, or
// for a system other than Linux, [Open] returns [ErrBuild].
//
// # Caveats
//
// A call into the driver hangs as long as a GPU does. So a separate goroutine reads each GPU,
// [Reader.Read] waits for a bounded time, and the result of a GPU that has not answered by then
// names the call that hangs.
package nvmlstat

import "errors"

// Errors of Open that retrying does not fix.
var (
	// ErrNoDriver reports a machine, or a container, without NVIDIA's driver.
	ErrNoDriver = errors.New("no NVIDIA driver here (libnvidia-ml.so.1 was not found)")
	// ErrBuild reports a program built without cgo.
	ErrBuild = errors.New(`this gnb was built without a C compiler, so it cannot ask NVIDIA's driver; install one (Debian, Ubuntu: apt install gcc libc6-dev) and build gnb again, or run "gnb install" again`)
)
