//go:build !linux || !cgo || !(amd64 || arm64)

package nvmlstat

import (
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// Built reports whether this program can use NVML.
const Built = false

// Reader exists only for compilation; Open never returns one.
type Reader struct{}

// Open fails with ErrBuild.
func Open() (*Reader, error) { return nil, ErrBuild }

// Driver returns "".
func (*Reader) Driver() string { return "" }

// Read returns nil.
func (*Reader) Read(time.Duration) []machine.GPU { return nil }
