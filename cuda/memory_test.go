//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
)

// What repeats itself allocates nothing once it has run.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	e, err := d.Event(false)
	check(t, err)
	var calls, reserved int64
	for i := range 30 {
		r := rand.New(rand.NewPCG(1, 2)) // the same sizes in every round
		var all []*Buffer
		for range 20 {
			x := alloc(t, d.Sampling, 1+r.Int64N(3<<20))
			d.Sampling.Fill8(x.Ptr, 1, min(x.Bytes, 64))
			x.UsedOn(d.Compute)
			all = append(all, x, alloc(t, d.Compute, 1+r.Int64N(100_000)))
		}
		d.Sampling.Record(e)
		d.Compute.Wait(e)
		for _, x := range all {
			d.Compute.Fill8(x.Ptr, 2, min(x.Bytes, 64))
			x.Free()
		}
		check(t, d.Compute.Sync())
		m := d.Memory()
		if i >= 3 && (m.Calls != calls || m.Reserved != reserved) {
			t.Fatalf("round %d: %d calls of the driver after %d, %d bytes after %d", i, m.Calls, calls, m.Reserved, reserved)
		}
		calls, reserved = m.Calls, m.Reserved
	}
	if calls == 0 {
		t.Error("no calls of the driver were counted")
	}
}

// Memory freed on its stream is handed out again at once; memory that another stream uses only when
// that has passed.
func TestReuseIsInOrder(t *testing.T) {
	if fakegpu.Real() {
		t.Skip("a real device may have passed what is to be under way")
	}
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	a := alloc(t, d.Compute, 4096)
	at := a.Ptr
	a.Free()
	b := alloc(t, d.Compute, 4096)
	if b.Ptr != at {
		t.Errorf("%#x is not used again, but %#x", at, b.Ptr)
	}
	if c := alloc(t, d.Sampling, 4096); c.Ptr == at {
		t.Error("memory of the compute stream was given to the sampling stream")
	}
	b.UsedOn(d.Copy)
	d.Copy.Fill8(b.Ptr, 1, 4096)
	b.Free()
	if c := alloc(t, d.Compute, 4096); c.Ptr == at {
		t.Error("memory that another stream still uses was handed out")
	}
	check(t, d.Copy.Sync())
	// Everything else that is cached first, then what has become free.
	for range smallSegment/4096 + 1 {
		if c := alloc(t, d.Compute, 4096); c.Ptr == at {
			return
		}
	}
	t.Error("memory that the other stream has passed is not used again")
}

// Neighbours that are free become one block again: fragments do not stay.
func TestFragmentsJoin(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	r := rand.New(rand.NewPCG(5, 6))
	var all []*Buffer
	for range 2000 {
		if len(all) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(all))
			all[i].Free()
			all[i].Free() // of no effect
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			continue
		}
		x := alloc(t, d.Compute, r.Int64N(2<<20))
		for _, y := range all {
			if x.Ptr < y.Ptr+Ptr(y.b.size) && y.Ptr < x.Ptr+Ptr(x.b.size) {
				t.Fatalf("%#x of %d bytes and %#x of %d overlap", x.Ptr, x.Bytes, y.Ptr, y.Bytes)
			}
		}
		all = append(all, x)
	}
	for _, x := range all {
		x.Free()
	}
	m := &d.mem
	for seg := range m.segments {
		if seg.first.next != nil || !seg.first.free || seg.first.size != seg.size {
			t.Errorf("a segment of %d bytes stays in pieces, the first of %d", seg.size, seg.first.size)
		}
	}
	if held := d.Memory().Held[Activations]; held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

func TestOutOfMemory(t *testing.T) {
	for name, c := range map[string]struct {
		limit, memory int64
	}{
		"limit":  {8 << 20, 256 << 20},
		"device": {0, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			fakegpu.New(t, fakegpu.Config{Memory: c.memory, Devices: 2})
			d := open(t, Options{Device: 1, Rank: 5, Limit: c.limit})
			f, err := d.Alloc(Features, 5<<20)
			check(t, err)
			small := alloc(t, d.Compute, 100)
			_, err = d.Alloc(Activations, 4<<20)
			var typed *Error
			if !errors.As(err, &typed) || !errors.Is(err, OutOfMemory) || typed.Device != 1 || typed.Rank != 5 {
				t.Fatalf("%v", err)
			}
			for _, want := range []string{"4.0 MiB for activations", "features 5.0 MiB", "limit", "smaller batch or fanout", "GNB_CUDA_FEATURES=pinned"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not one line", err)
			}
			// The device goes on, and room that is made is used, though it is cached for another size.
			f.Free()
			if d.Err() != nil {
				t.Fatalf("a refused allocation became the device's failure: %v", d.Err())
			}
			x := alloc(t, d.Compute, 4<<20)
			x.Free()
			small.Free()
		})
	}
}

// With Exact a checker sees an access one element past a buffer; with the cache it is inside a segment.
func TestExactShowsTheEndOfABuffer(t *testing.T) {
	for _, exact := range []bool{true, false} {
		gpu := fakegpu.New(t, fakegpu.Config{Quiet: true})
		d, err := Open(Options{Exact: exact})
		check(t, err)
		check(t, d.AddModule("test", testPTX))
		x := alloc(t, d.Compute, 1000)
		d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x.Ptr+1000, float32(1))
		if err := d.Compute.Sync(); (err != nil) != exact {
			t.Errorf("exact %v: %v", exact, err)
		}
		if n := len(gpu.TakeFaults()); (n > 0) != exact {
			t.Errorf("exact %v: %d faults", exact, n)
		}
		x.Free()
		if err := d.Close(); (err != nil) != exact {
			t.Errorf("closing, exact %v: %v", exact, err)
		}
		gpu.Uninstall()
	}
}

// Batches that vary by some percent use one another's memory; where there is no room for what makes them
// alike, they have what they ask for, and what stays takes no more than that.
func TestSizesThatVary(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{Memory: 512 << 20})
	d := open(t, Options{Limit: 300 << 20})
	var calls int64
	for _, mb := range []int64{97, 99, 103, 98, 104} {
		alloc(t, d.Compute, mb<<20).Free()
		if n := d.Memory().Calls; calls != 0 && n != calls {
			t.Errorf("%d MB: %d calls of the driver after %d", mb, n, calls)
		}
		calls = d.Memory().Calls
	}
	stays, err := d.Alloc(Features, 194<<20)
	check(t, err)
	if n := d.Memory().Held[Features]; n != 194<<20 {
		t.Errorf("%d bytes are held for %d", n, stays.Bytes)
	}
	check(t, d.Err())
	tight := alloc(t, d.Sampling, 106<<20) // not 112 MB, which there are not
	tight.Free()
	stays.Free()
}

// Several ranks leave their libraries more of the device.
func TestRanksLeaveRoom(t *testing.T) {
	if fakegpu.Real() {
		t.Skip("a real device's memory is what it is")
	}
	for _, c := range []struct{ memory, ranks, limit int64 }{
		{8 << 30, 1, 8<<30 - 8<<30/20}, {8 << 30, 2, 7 << 30}, {80 << 30, 8, 76 << 30}, {2 << 30, 2, 3 << 29},
	} {
		gpu := fakegpu.New(t, fakegpu.Config{Memory: c.memory})
		d, err := Open(Options{Ranks: int(c.ranks)})
		check(t, err)
		if got := d.Memory().Limit; got != c.limit {
			t.Errorf("%s, %d ranks: the limit is %d, want %d", phrase.Bytes(c.memory), c.ranks, got, c.limit)
		}
		check(t, d.Close())
		gpu.Uninstall()
	}
}
