//go:build !cuda || !linux || !cgo

package cuda

import (
	"errors"
	"strings"
	"testing"
)

func TestOpenSaysWhyNot(t *testing.T) {
	d, err := Open(Options{})
	if d != nil || !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("device %v, error %v", d, err)
	}
	if text := err.Error(); !strings.Contains(text, "-tags cuda") || strings.Contains(text, "\n") {
		t.Errorf("%q does not say what to do in one line", text)
	}
}
