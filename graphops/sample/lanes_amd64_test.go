package sample

import (
	"testing"

	"github.com/graphnb/graphnb/internal/simd"
)

// onPaths runs a test with each instruction set that the processor has.
func onPaths(t *testing.T, f func(t *testing.T)) {
	before := path
	defer func() { path = before }()
	for p := simd.Go; p <= simd.Best(); p++ {
		path = p
		t.Run(p.String(), f)
	}
}
