//go:build !cuda || !linux || !cgo

package cuda

import "fmt"

// newDriver says why this program cannot have one.
func newDriver() (driver, error) {
	return nil, fmt.Errorf("cuda: this program is %w, which needs Linux, cgo (a C compiler) and -tags cuda; \"gnb install --cuda\" installs a notebook kernel with it", ErrNotBuilt)
}
