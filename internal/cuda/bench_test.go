//go:build cuda && linux && cgo

package cuda

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// bench opens a device for a benchmark: the real one with GNB_GPU_CHECK, else the interpreter, on
// which only the host's part of a time is meaningful.
func bench(b *testing.B) *Device {
	b.Helper()
	fakegpu.New(b, fakegpu.Config{Schedule: fakegpu.Eager, NoRaces: true})
	return open(b, Options{})
}

// BenchmarkLaunch measures a launch: the caller's request and the call by the device's goroutine. As in a training
// step, the caller waits for the device after a number of launches that the queue has room for.
func BenchmarkLaunch(b *testing.B) {
	d := bench(b)
	x := alloc(b, d.Compute, 4)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		d.Launch("test_store_f32", Dim{X: 1}, Dim{X: 1}, 0, x.Ptr, float32(1))
		if n%256 == 0 {
			check(b, d.Compute.Sync())
		}
	}
	check(b, d.Compute.Sync())
}

// BenchmarkDriversLaunch measures the driver's part of a launch: many calls by the device's goroutine at once.
func BenchmarkDriversLaunch(b *testing.B) {
	d := bench(b)
	x := alloc(b, d.Compute, 4)
	d.Launch("test_store_f32", Dim{X: 1}, Dim{X: 1}, 0, x.Ptr, float32(1)) // loads the kernel
	check(b, d.Compute.Sync())
	k := d.kernels.byName["test_store_f32"]
	args := []uint64{uint64(x.Ptr), uint64(math.Float32bits(1))}
	for b.Loop() {
		check(b, d.do("launching many times", func() error {
			for range 256 {
				if err := d.drv.launch(k.fn, Dim{1, 1, 1}, Dim{1, 1, 1}, 0, d.Compute.h, args); err != nil {
					return err
				}
			}
			return nil
		}))
		check(b, d.Compute.Sync())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(256*b.N), "ns/launch")
}

// BenchmarkRoundTrip measures a launch and the copy of its four bytes to the host.
func BenchmarkRoundTrip(b *testing.B) {
	d := bench(b)
	x := alloc(b, d.Compute, 4)
	got := make([]float32, 1)
	for b.Loop() {
		d.Launch("test_store_f32", Dim{X: 1}, Dim{X: 1}, 0, x.Ptr, float32(1))
		check(b, CopyOut(d.Compute, got, x.Ptr))
	}
}

// BenchmarkAlloc measures an allocation from the cache and its release.
func BenchmarkAlloc(b *testing.B) {
	d := bench(b)
	for b.Loop() {
		alloc(b, d.Compute, 1<<20).Free()
	}
}

// BenchmarkCopy measures copies between ordinary memory, pinned memory and the device.
func BenchmarkCopy(b *testing.B) {
	d := bench(b)
	const n = 64 << 20
	x, y := alloc(b, d.Compute, n), alloc(b, d.Compute, n)
	host := make([]byte, n)
	p, err := d.Pin(n)
	check(b, err)
	for _, c := range []struct {
		name string
		copy func() error
	}{
		{"in", func() error { return CopyIn(d.Compute, x.Ptr, host) }},
		{"out", func() error { return CopyOut(d.Compute, host, x.Ptr) }},
		{"from pinned", func() error { d.Compute.CopyFromPinned(x.Ptr, p, 0, n); return nil }},
		{"to pinned", func() error { d.Compute.CopyToPinned(p, 0, x.Ptr, n); return nil }},
		{"on the device", func() error { d.Compute.Copy(y.Ptr, x.Ptr, n); return nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(n)
			for b.Loop() {
				check(b, c.copy())
				check(b, d.Compute.Sync())
			}
		})
	}
}
