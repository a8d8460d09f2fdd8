//go:build !linux || !cgo || !(amd64 || arm64)

package nvmlstat

import (
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// Built reports whether this program can ask NVML.
const Built = false

// Reader is there to be built with; there is never one.
type Reader struct{}

// Open fails with ErrBuild.
func Open() (*Reader, error) { return nil, ErrBuild }

// Driver is "".
func (*Reader) Driver() string { return "" }

// Read is empty.
func (*Reader) Read(time.Duration) []machine.GPU { return nil }
