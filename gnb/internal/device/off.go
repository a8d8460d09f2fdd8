//go:build !cuda || !linux || !cgo

package device

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/internal/machine"
)

var errNoGPUBuild = errors.New(`this program was built without GPU support: take the notebook kernel that "gnb install --cuda" makes, or build with -tags cuda (Linux, with a C compiler)`)

// built says that the program can use GPUs.
const built = false

// Count returns the number of GPUs that workers may use, or the reason why there is none. It opens
// no driver.
func Count() (int, error) {
	if slots, err := machine.GPUSlots(); err == nil {
		return 0, fmt.Errorf("%d NVIDIA GPUs found, but %w", len(slots), errNoGPUBuild)
	}
	return 0, fmt.Errorf("no NVIDIA GPU found, and %w", errNoGPUBuild)
}

func open(*Options) (Device, error) { return nil, errNoGPUBuild }
