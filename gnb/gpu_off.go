//go:build !cuda || !linux || !cgo

package gnb

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/internal/machine"
)

var errNoGPUBuild = errors.New(`this program was built without GPU support: take the notebook kernel that "gnb install --cuda" makes, or build with -tags cuda (Linux, with a C compiler)`)

// gpuCount is the number of GPUs that workers may use, with the reason where there
// is none. It touches no driver.
func gpuCount() (int, error) {
	if slots, err := machine.GPUSlots(); err == nil {
		return 0, fmt.Errorf("%d NVIDIA GPUs found, but %w", len(slots), errNoGPUBuild)
	}
	return 0, fmt.Errorf("no NVIDIA GPU found, and %w", errNoGPUBuild)
}

func openGPU(*Worker) (gpu, error) { return nil, errNoGPUBuild }
