//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/graphnb/graphnb/internal/machine"
)

// Built reports whether this program can use NVML.
const Built = true

// Reader reads all GPUs that NVML listed when it was opened. Only one goroutine may use it. It has
// no Close: its process ends with it, and a hanging call would block closing.
type Reader struct {
	driver  string
	devices []*device
}

// Open loads the driver's library and finds the GPUs. It may take seconds if no other process keeps
// the driver loaded, and hangs if the driver does: call it where a hang is acceptable, such as in a
// separate process. The error is ErrNoDriver, ErrBuild, or the driver's.
func Open() (*Reader, error) {
	forward()
	return open(nvml.New())
}

func open(lib nvml.Interface) (*Reader, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		// After this, no function of the library may be called, not even to get an error's text.
		return nil, initError(ret)
	}
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("counting GPUs: %w", failure(ret))
	}
	r := &Reader{}
	if v, ret := lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		r.driver = v
	}
	has := func(symbol string) bool { return lib.Extensions().LookupSymbol(symbol) == nil }
	for i := range n {
		d := &device{index: i, lib: lib, has: has, proc: "/proc"}
		r.devices = append(r.devices, d)
	}
	return r, nil
}

// initError returns an error that says why NVML did not start, and what to do.
func initError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return ErrNoDriver
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("NVIDIA's driver is installed but not loaded; \"nvidia-smi\" loads it, or says why it cannot be (%s)", code(ret))
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("NVIDIA's library and the driver in the kernel are of different releases, as after an update; restart the machine (%s)", code(ret))
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("this user may not open the files /dev/nvidia*; ask for the group that may (%s)", code(ret))
	}
	return fmt.Errorf("NVIDIA's driver did not start: %s; see what \"nvidia-smi\" says", code(ret))
}

func code(ret nvml.Return) string { return fmt.Sprintf("NVML error %d", int(ret)) }

// failure returns the error of a call after the library has started.
func failure(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return fmt.Errorf("the GPU has fallen off the bus or stopped; \"nvidia-smi --gpu-reset\" or a restart brings it back (%s)", code(ret))
	case nvml.ERROR_RESET_REQUIRED:
		return fmt.Errorf("the GPU needs a reset (%s)", code(ret))
	}
	return fmt.Errorf("%s (%s)", strings.ToLower(ret.Error()), code(ret))
}

// Driver returns the driver's version.
func (r *Reader) Driver() string { return r.driver }

// Read returns the figures of all GPUs, by index. It returns when all have been read or wait has
// passed; a GPU that has not answered reports that, and is read again once it has.
func (r *Reader) Read(wait time.Duration) []machine.GPU {
	now := time.Now()
	all := make(chan struct{})
	var left sync.WaitGroup
	for _, d := range r.devices {
		d.start(now, &left)
	}
	go func() {
		left.Wait()
		close(all)
	}()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-all:
	case <-t.C:
	}
	out := make([]machine.GPU, len(r.devices))
	for i, d := range r.devices {
		out[i] = d.latest(time.Now())
	}
	return out
}
