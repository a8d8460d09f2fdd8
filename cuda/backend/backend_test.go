//go:build cuda && linux && cgo

package backend

import (
	"sync"
	"testing"

	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/graphops/tensor/backendtest"
)

// open is a backend on an interpreted device, until the test ends.
func open(t testing.TB, c fakegpu.Config, blas Multiplier) *Backend {
	t.Helper()
	fakegpu.New(t, c)
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	be, err := New(d, blas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		count(d)
		be.Close()
		if err := d.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return be
}

// launched counts kernels over all tests.
var launched sync.Map

func count(d *cuda.Device) {
	for name := range d.Launches() {
		launched.Store(name, true)
	}
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, open(t, fakegpu.Config{NoRaces: true, Memory: 8 << 30}, nil))
}
