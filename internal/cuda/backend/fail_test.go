//go:build cuda && linux && cgo

package backend

import (
	"errors"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A device without room ends a pass with an error that says how much each use holds, and the same
// backend then runs with less.
func TestOutOfMemory(t *testing.T) {
	testneed.NotShort(t, "it fills 64 MB on the interpreter")
	if onGPU {
		t.Skip("a real device has more memory than this fills")
	}
	be := open(t, fakegpu.Config{Memory: 64 << 20})
	pass := func(rows int) error {
		return nn.Try(func() {
			f := tensor.NewFwd(tensor.Config{Backend: be, Grad: true})
			defer f.Close()
			x := f.Leaf(rows, 64, make([]float32, rows*64), nil)
			if err := f.SumAll(f.Tanh(f.Sigmoid(f.Exp(x)))).Backward(); err != nil {
				panic(err)
			}
		})
	}
	err := pass(80_000)
	if !errors.Is(err, cuda.OutOfMemory) {
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{"activations", "device 0", "batch"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if err := pass(8); err != nil {
		t.Errorf("a smaller pass after it: %v", err)
	}
	if n := be.Device().Memory().Held[cuda.Activations]; n != 0 {
		t.Errorf("%d bytes of activations are held after the passes", n)
	}
}

// The next wait after a failed kernel returns an error that names the kernel.
func TestLostDevice(t *testing.T) {
	if onGPU {
		t.Skip("needs a simulated fault")
	}
	gpu := fakegpu.New(t, fakegpu.Config{Quiet: true})
	d, err := cuda.Open(cuda.Options{Debug: true, Rank: 3})
	if err != nil {
		t.Fatal(err)
	}
	be, err := New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	gpu.Inject(fakegpu.Fault{Kernel: "unary_f32", Status: int(cuda.IllegalAddress)})
	err = nn.Try(func() {
		f := tensor.NewFwd(tensor.Config{Backend: be})
		f.Tanh(f.Input(1, 2, []float32{1, 2}, nil)).Data()
	})
	if !errors.Is(err, cuda.IllegalAddress) || !strings.Contains(err.Error(), "unary_f32") || !strings.Contains(err.Error(), "rank 3") {
		t.Errorf("error %v", err)
	}
	be.Close()
	if err := d.Close(); !errors.Is(err, cuda.IllegalAddress) {
		t.Errorf("closing it: %v", err)
	}
}
