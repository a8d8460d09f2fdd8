//go:build cuda && linux && cgo

package cuda

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

//go:embed testdata/test.ptx
var testPTX string

// open opens a device with the kernels of testdata/test.ptx, and closes it when the test ends.
func open(t testing.TB, o Options) *Device {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !t.Failed() && !errors.Is(err, ErrClosed) && d.failed.Load() == nil {
			t.Error(err)
		}
	})
	if err := d.AddModule("test", testPTX); err != nil {
		t.Fatal(err)
	}
	return d
}

func alloc(t testing.TB, s *Stream, n int64) *Buffer {
	t.Helper()
	b, err := s.Alloc(Activations, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func iota32(n int) []uint32 {
	x := make([]uint32, n)
	for i := range x {
		x[i] = uint32(i)
	}
	return x
}

func TestLaunchCopyAndCount(t *testing.T) {
	for name, schedule := range map[string]fakegpu.Schedule{"lazy": fakegpu.Lazy, "eager": fakegpu.Eager, "random": fakegpu.Random} {
		t.Run(name, func(t *testing.T) {
			fakegpu.New(t, fakegpu.Config{Schedule: schedule, Seed: 7})
			d := open(t, Options{})
			const n = 1025
			x, y := alloc(t, d.Compute, 4*n), alloc(t, d.Compute, 4*n)
			check(t, CopyIn(d.Compute, x.Ptr, iota32(n)))
			for range 3 {
				d.Launch("test_add_u32", Blocks(n, 256), Dim{X: 256}, 0, y, x, n, 5)
				d.Compute.Copy(x.Ptr, y.Ptr, 4*n)
			}
			got := make([]uint32, n)
			check(t, CopyOut(d.Compute, got, x.Ptr))
			for i, v := range got {
				if v != uint32(i)+15 {
					t.Fatalf("element %d is %d", i, v)
				}
			}
			d.Compute.Fill32(x.Ptr, 9, n)
			d.Compute.Fill8(x.Ptr+4*(n-1), 1, 4)
			check(t, CopyOut(d.Compute, got, x.Ptr))
			if got[n-2] != 9 || got[n-1] != 0x01010101 {
				t.Errorf("filled with %#x", got[n-2:])
			}
			if c := d.Launches(); len(c) != 1 || c["test_add_u32"] != 3 {
				t.Errorf("launches %v", c)
			}
			x.Free()
			y.Free()
			if m := d.Memory(); m.Held[Activations] != 0 {
				t.Errorf("held %v after everything was freed", m.Held)
			}
		})
	}
}

// A copy larger than the ring of chunks reuses the ring's chunks.
func TestCopiesLargerThanTheRing(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	const n = (chunks+1)*chunkSize/4 + 3
	x := alloc(t, d.Compute, 4*n)
	want := iota32(n)
	check(t, CopyIn(d.Compute, x.Ptr, want))
	clear(want) // the source may change once CopyIn has returned
	got := make([]uint32, n)
	check(t, CopyOut(d.Compute, got, x.Ptr))
	if !slices.Equal(got, iota32(n)) {
		t.Error("the bytes copied out differ from those copied in")
	}
}

// A stream that uses all its chunks does not block copies of other streams.
func TestRingOfEachStream(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	x := alloc(t, d.Sampling, 16)
	var taken []*chunk
	for range chunks {
		c, err := d.Compute.stage.take(chunkSize)
		check(t, err)
		taken = append(taken, c)
	}
	got := make([]uint32, 4)
	check(t, CopyIn(d.Sampling, x.Ptr, iota32(4)))
	check(t, CopyOut(d.Sampling, got, x.Ptr))
	if !slices.Equal(got, iota32(4)) {
		t.Error("the bytes copied out differ from those copied in")
	}
	for _, c := range taken {
		c.put()
	}
}

// CopyOutLater returns the bytes at the time of its call, whatever the stream does afterwards, and
// however many copies are requested before the first is read. Reading a copy does not wait for
// later work.
func TestCopiesReadLater(t *testing.T) {
	gpu := fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	x := alloc(t, d.Compute, 8)
	const n = 2*laterSlots + 3
	var later []*Later
	for i := range n {
		check(t, CopyIn(d.Compute, x.Ptr, []uint32{uint32(i), 7}))
		later = append(later, d.Compute.CopyOutLater(x.Ptr, 8))
	}
	d.Compute.Fill32(x.Ptr, 99, 2)
	for i, l := range later {
		for range 2 {
			got, err := l.Wait()
			check(t, err)
			if want := []byte{byte(i), 0, 0, 0, 7, 0, 0, 0}; !slices.Equal(got, want) {
				t.Fatalf("copy %d is %v, want %v", i, got, want)
			}
		}
	}
	if !fakegpu.Real() {
		gpu.Inject(fakegpu.Fault{Call: "cuEventSynchronize", Status: int(LaunchFailed), Lost: true})
		if b, err := d.Compute.CopyOutLater(x.Ptr, 8).Wait(); err == nil {
			t.Errorf("a failed device returned %v", b)
		}
	}
}

// An event orders two streams; without it, the interpreter reports a read of unwritten memory.
func TestEventsOrderStreams(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprint(ordered), func(t *testing.T) {
			gpu := fakegpu.New(t, fakegpu.Config{Quiet: true})
			d := open(t, Options{})
			x := alloc(t, d.Sampling, 4)
			x.UsedOn(d.Compute)
			e, err := d.Event(false)
			check(t, err)
			d.Sampling.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x, float32(3))
			d.Sampling.Record(e)
			if ordered {
				d.Compute.Wait(e)
			}
			got := make([]float32, 1)
			err = CopyOut(d.Compute, got, x.Ptr)
			if ordered && (err != nil || got[0] != 3) {
				t.Errorf("%v, %v", got, err)
			}
			if !ordered && (err == nil || len(gpu.TakeFaults()) == 0) {
				t.Errorf("the missing wait was not detected: %v", got)
			}
		})
	}
}

func TestEventTimes(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	x := alloc(t, d.Compute, 4)
	a, err := d.Event(true)
	check(t, err)
	b, err := d.Event(true)
	check(t, err)
	d.Compute.Record(a)
	d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x, float32(3))
	d.Compute.Record(b)
	if done, err := b.Done(); done && !fakegpu.Real() || err != nil { // a real device may already have finished
		t.Errorf("done %v, %v before any wait", done, err)
	}
	check(t, b.Sync())
	if done, err := b.Done(); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	if took, err := b.Since(a); err != nil || took <= 0 {
		t.Errorf("took %v, %v", took, err)
	}
}

// Goroutines that wait do not block those that submit, and each command runs once.
func TestManyGoroutines(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{Schedule: fakegpu.Random, Seed: 3})
	d := open(t, Options{})
	var wg sync.WaitGroup
	for i, s := range []*Stream{d.Compute, d.Copy, d.Sampling, d.Compute} {
		wg.Go(func() {
			for j := range 50 {
				n := 64 + 16*i
				x, err := s.Alloc(Sampling, int64(4*n))
				if err != nil {
					t.Error(err)
					return
				}
				if err := CopyIn(s, x.Ptr, iota32(n)); err != nil {
					t.Error(err)
					return
				}
				s.Launch("test_add_u32", Blocks(n, 32), Dim{X: 32}, 0, x, x, n, j)
				got := make([]uint32, n)
				if err := CopyOut(s, got, x.Ptr); err != nil || got[n-1] != uint32(n-1+j) {
					t.Errorf("%v, %v", got[n-1], err)
					return
				}
				x.Free()
			}
		})
	}
	wg.Wait()
	if n := d.Launches()["test_add_u32"]; n != 200 {
		t.Errorf("%d launches", n)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		kernel string
		args   []any
		want   string
	}{
		"kernel":  {"test_nothing", nil, "no kernel with that name"},
		"count":   {"test_store_f32", []any{Ptr(512)}, "1 arguments given, but it has 2"},
		"type":    {"test_store_f32", []any{Ptr(512), 1}, "argument 1 does not fit"},
		"integer": {"test_add_u32", []any{Ptr(512), Ptr(512), 1, 1 << 40}, "argument 3 does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			fakegpu.New(t, fakegpu.Config{})
			d := open(t, Options{Rank: 3})
			d.Launch(c.kernel, Dim{X: 1}, Dim{X: 1}, 0, c.args...)
			err := d.Compute.Sync()
			var typed *Error
			if !errors.As(err, &typed) || typed.Kernel != c.kernel || typed.Rank != 3 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{Schedule: fakegpu.Eager})
	d := open(t, Options{})
	x := alloc(t, d.Compute, 4096)
	v := float32(2)
	d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x, v)
	check(t, d.Compute.Sync())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// A closed device executes no commands, so only the caller's allocations are counted.
	if n := testing.AllocsPerRun(100, func() { d.Launch("test_store_f32", Dim{X: 1}, Dim{X: 32}, 0, x.Ptr, v) }); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
}

func TestClosedDevice(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	x := alloc(t, d.Compute, 4)
	check(t, d.Close())
	check(t, d.Close())
	d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x, float32(1))
	for name, err := range map[string]error{
		"Err": d.Err(), "Sync": d.Compute.Sync(), "CopyIn": CopyIn(d.Compute, x.Ptr, []float32{1}),
		"Alloc": func() error { _, err := d.Alloc(Params, 4); return err }(),
		"Pin":   func() error { _, err := d.Pin(4); return err }(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	x.Free()
}

// TestCloseWaitsForCopies closes the device during a copy between staging memory and the program's
// memory. Close waits until the copy has ended, and later copies fail.
func TestCloseWaitsForCopies(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	copying, goOn, closed := make(chan bool), make(chan bool), make(chan error)
	go func() {
		_ = d.alive("copying", func() { close(copying); <-goOn })
	}()
	<-copying
	go func() { closed <- d.Close() }()
	select {
	case err := <-closed:
		t.Errorf("the device was closed during a copy: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	check(t, <-closed)
	if err := d.alive("copying", func() { t.Error("a closed device ran a copy") }); !errors.Is(err, ErrClosed) {
		t.Errorf("copying from a closed device: %v", err)
	}
}
