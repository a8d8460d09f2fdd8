//go:build !cuda || !linux || !cgo

package device

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/internal/machine"
)

var errNoGPUBuild = errors.New(`this program was built without GPU support: take the notebook kernel that "gnb install --cuda" makes, or build with -tags cuda (Linux, with a C compiler)`)

// Count is the number of GPUs that workers may use, with the reason where there
// is none. It touches no driver.
func Count() (int, error) {
	if slots, err := machine.GPUSlots(); err == nil {
		return 0, fmt.Errorf("%d NVIDIA GPUs found, but %w", len(slots), errNoGPUBuild)
	}
	return 0, fmt.Errorf("no NVIDIA GPU found, and %w", errNoGPUBuild)
}

func open(*Options) (Device, error) { return nil, errNoGPUBuild }
