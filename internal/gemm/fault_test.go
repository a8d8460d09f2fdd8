//go:build linux || darwin

package gemm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/internal/mapped"
)

// cutOff returns zeros that are mapped from a file, which is then truncated to its first page.
func cutOff(t *testing.T, n int) []float32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "matrix")
	if err := os.WriteFile(path, make([]byte, 4*n), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Truncate(path, int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	b := f.Bytes()
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// A fault in a kernel, on any goroutine, is returned as an error that names the file, and does not
// affect the next product.
func TestFaultsInKernelsAreErrors(t *testing.T) {
	const side = 300
	gone, here := cutOff(t, side*side), make([]float32, side*side)
	for i := range here {
		here[i] = 1
	}
	every := make([]int32, side)
	for i := range every {
		every[i] = int32(i)
	}
	check := func(t *testing.T, o Options) {
		full := Operand{Data: here, Stride: side}
		c := make([]float32, side*side)
		for _, trans := range []bool{false, true} {
			for _, index := range [][]int32{nil, every} {
				lost := Operand{Data: gone, Stride: side, Trans: trans, Index: index}
				for name, term := range map[string]Term{"A": {K: side, A: lost, B: full}, "B": {K: side, A: full, B: lost}, "B, A transposed": {K: side, A: Operand{Data: here, Stride: side, Trans: true}, B: lost}} {
					err := mapped.Guard(func() error {
						Multiply(side, side, c, side, []Term{term}, o)
						return nil
					})
					var fault *mapped.Fault
					if !errors.As(err, &fault) || fault.Offset < int64(os.Getpagesize()) {
						t.Fatalf("%s, transposed %v, index %v, %d threads: %v, want a fault behind the first page", name, trans, index != nil, o.Threads, err)
					}
				}
			}
		}
		Multiply(side, side, c, side, []Term{{K: side, A: full, B: full}}, o)
		for i, v := range c {
			if v != side {
				t.Fatalf("after the faults element %d of a product is %v, want %d", i, v, side)
			}
		}
	}
	for threads := 1; threads <= 3; threads++ {
		t.Run(fmt.Sprint(threads, " threads"), func(t *testing.T) {
			onEachPath(t, func(t *testing.T) { check(t, Options{Threads: threads}) })
			onEachBF16Path(t, func(t *testing.T) { check(t, Options{Threads: threads, BF16: true}) })
		})
	}
}
