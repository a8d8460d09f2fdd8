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

// Built reports whether this program can ask NVML.
const Built = true

// Reader reads all GPUs that NVML lists when it is opened. One goroutine uses it. It is never closed: the
// process that has one ends with it, and a call that hangs would keep it from closing.
type Reader struct {
	driver  string
	devices []*device
}

// Open loads the driver's library and looks for GPUs. It may take seconds where no other process keeps the
// driver awake, and hangs where the driver does: call it where that can be left behind. An error is
// ErrNoDriver, ErrBuild, or what the driver says.
func Open() (*Reader, error) {
	forward()
	return open(nvml.New())
}

func open(lib nvml.Interface) (*Reader, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		// After this no function of the library may be called, not even for an error's text.
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

// initError says why NVML did not start, and what to do.
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

// failure returns what a call of a library that has started says.
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

// Read is all GPUs now, by index. It returns when all have been read or wait has passed; those that have not
// answered say so, and are asked again once they have.
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
