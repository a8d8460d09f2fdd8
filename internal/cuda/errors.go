package cuda

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotBuilt matches the error of [Open] in a program built without GPU support.
var ErrNotBuilt = errors.New("built without GPU support")

// ErrNoDriver matches the error of [Open] if no NVIDIA driver can be loaded.
var ErrNoDriver = errors.New("no NVIDIA driver")

// ErrOldDriver matches the error of [Open] if the driver is too old for the kernels.
var ErrOldDriver = errors.New("the NVIDIA driver is too old")

// ErrClosed is the error of a closed device.
var ErrClosed = errors.New("the device is closed")

// Status is a result of the driver, a CUresult. errors.Is finds it in an [Error].
type Status int

// Results that a program may handle differently.
const (
	InvalidValue       Status = 1
	OutOfMemory        Status = 2
	NotInitialized     Status = 3
	NoDevice           Status = 100
	InvalidDevice      Status = 101
	InvalidImage       Status = 200
	InvalidContext     Status = 201
	NoBinary           Status = 209
	ECCUncorrectable   Status = 214
	InvalidPTX         Status = 218
	NoCompiler         Status = 221
	UnsupportedPTX     Status = 222 // compiled for a newer CUDA than the driver's
	OperatingSystem    Status = 304
	NotFound           Status = 500
	NotReady           Status = 600
	IllegalAddress     Status = 700
	LaunchOutOfMemory  Status = 701
	LaunchTimeout      Status = 702
	AlreadyRegistered  Status = 712
	Assert             Status = 710
	MisalignedAddress  Status = 716
	LaunchFailed       Status = 719
	NotSupported       Status = 801
	DriverMismatch     Status = 803
	CompatNotSupported Status = 804
	Unknown            Status = 999
)

var statusText = map[Status]string{
	InvalidValue:       "invalid value",
	OutOfMemory:        "out of memory",
	NotInitialized:     "the driver is not initialised",
	NoDevice:           "no CUDA device",
	InvalidDevice:      "no such device",
	InvalidImage:       "not a module",
	InvalidContext:     "no valid context",
	NoBinary:           "the kernels have no code for this device",
	ECCUncorrectable:   "uncorrectable memory error",
	InvalidPTX:         "invalid PTX",
	NoCompiler:         "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is missing: a container has it where NVIDIA_DRIVER_CAPABILITIES contains \"compute\", and a machine with the whole driver",
	UnsupportedPTX:     "PTX newer than the driver",
	OperatingSystem:    "a call of the operating system failed",
	NotFound:           "not found",
	NotReady:           "not ready",
	IllegalAddress:     "illegal address",
	LaunchOutOfMemory:  "too many resources for a launch",
	LaunchTimeout:      "the kernel ran into the device's time limit",
	AlreadyRegistered:  "the memory is registered already",
	Assert:             "an assertion of the kernel failed",
	MisalignedAddress:  "misaligned address",
	LaunchFailed:       "the kernel failed",
	NotSupported:       "not supported",
	DriverMismatch:     "the driver's parts are of different versions",
	CompatNotSupported: "this device does not run in compatibility mode",
	Unknown:            "unknown failure",
}

func (s Status) Error() string {
	if t, ok := statusText[s]; ok {
		return t
	}
	return fmt.Sprintf("CUDA error %d", int(s))
}

// Lost reports whether the context can no longer be used, rather than a single call having failed.
func (s Status) Lost() bool {
	switch s {
	case ECCUncorrectable, IllegalAddress, LaunchTimeout, Assert, MisalignedAddress, LaunchFailed, Unknown:
		return true
	}
	return s >= 700 && s < 800 && s != LaunchOutOfMemory && s != AlreadyRegistered
}

// Error is a failure of a device. Its text is one sentence with the device, the rank, the call and
// the kernel; Unwrap returns the cause, a [Status] if the driver returned one.
type Error struct {
	Device int
	Name   string // of the device, if known
	Rank   int
	Op     string // the operation: "launching", "allocating"
	Kernel string // the kernel concerned, or the last one launched if the failure was reported later
	Cause  error
	Detail string // further details, and what to do
}

func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cuda: device %d", e.Device)
	if e.Name != "" {
		fmt.Fprintf(&b, " (%s)", e.Name)
	}
	fmt.Fprintf(&b, ", rank %d: %s", e.Rank, e.Op)
	if e.Kernel != "" {
		fmt.Fprintf(&b, " %s", e.Kernel)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, "; %s", e.Detail)
	}
	return b.String()
}
