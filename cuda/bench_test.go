//go:build cuda && linux && cgo

package cuda

import (
	"testing"

	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
)

// bench opens a device for a benchmark: the real one with GNB_GPU_CHECK, else the interpreter, on
// which only the host's part of a time is meaningful.
func bench(b *testing.B) *Device {
	b.Helper()
	fakegpu.New(b, fakegpu.Config{Schedule: fakegpu.Eager, NoRaces: true})
	return open(b, Options{})
}

// BenchmarkLaunch measures a launch: the caller's request and the call by the device's goroutine.
func BenchmarkLaunch(b *testing.B) {
	d := bench(b)
	x := alloc(b, d.Compute, 4)
	b.ReportAllocs()
	for b.Loop() {
		d.Launch("test_store_f32", Dim{X: 1}, Dim{X: 1}, 0, x.Ptr, float32(1))
	}
	check(b, d.Compute.Sync())
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
