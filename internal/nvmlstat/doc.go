// Package nvmlstat reads NVIDIA's GPUs through NVML, the library that comes with the driver.
//
// Only the helper process "gnb monitor --helper" uses it (see package machine): it takes cgo, and a crash
// in the driver's library ends the process. Built without a C compiler, or for another system than Linux,
// [Open] says so and nothing else is there.
//
// # Caveats
//
// A call into the driver can hang for as long as a GPU does. So each GPU is read by a goroutine of its own,
// [Reader.Read] waits for a bounded time, and a GPU that has not answered by then says in which call it is.
package nvmlstat

import "errors"

// Errors of Open that will not go away by themselves.
var (
	// ErrNoDriver is a machine, or a container, without NVIDIA's driver.
	ErrNoDriver = errors.New("no NVIDIA driver here (libnvidia-ml.so.1 was not found)")
	// ErrBuild is a program without cgo.
	ErrBuild = errors.New(`this gnb was built without a C compiler, so it cannot ask NVIDIA's driver; install one (Debian, Ubuntu: apt install gcc libc6-dev) and build gnb again, or run "gnb install" again`)
)
