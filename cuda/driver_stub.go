//go:build !cuda || !linux || !cgo

package cuda

import "fmt"

// newDriver says why this program cannot have one.
func newDriver() (driver, error) {
	return nil, fmt.Errorf("cuda: this program is %w: it takes Linux, cgo (a C compiler) and -tags cuda; \"gnb install --cuda\" makes a notebook kernel that has it", ErrNotBuilt)
}
