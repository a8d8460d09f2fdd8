//go:build !cuda || !linux || !cgo

package cuda

import "fmt"

// newDriver returns the reason why this program has no driver.
func newDriver() (driver, error) {
	return nil, fmt.Errorf("cuda: this program is %w, which needs Linux, cgo (a C compiler) and -tags cuda; \"gnb install --cuda\" installs a notebook kernel with it", ErrNotBuilt)
}
