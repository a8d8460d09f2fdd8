//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// A repeated pattern of allocations makes no further calls of the driver after its first rounds.
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
			t.Fatalf("round %d: %d calls of the driver, before it %d; %d bytes reserved, before it %d", i, m.Calls, calls, m.Reserved, reserved)
		}
		calls, reserved = m.Calls, m.Reserved
	}
	if calls == 0 {
		t.Error("Memory counts no calls of the driver")
	}
}

// Memory that is freed on its own stream is reused at once. Memory that another stream uses is
// reused only when that stream has passed the use.
func TestReuseIsInOrder(t *testing.T) {
	if fakegpu.Real() {
		t.Skip("a real device may already have finished the work in flight")
	}
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	a := alloc(t, d.Compute, 4096)
	at := a.Ptr
	a.Free()
	b := alloc(t, d.Compute, 4096)
	if b.Ptr != at {
		t.Errorf("the freed memory at %#x is not reused; the new memory is at %#x", at, b.Ptr)
	}
	if c := alloc(t, d.Sampling, 4096); c.Ptr == at {
		t.Error("the sampling stream got memory of the compute stream")
	}
	b.UsedOn(d.Copy)
	d.Copy.Fill8(b.Ptr, 1, 4096)
	b.Free()
	if c := alloc(t, d.Compute, 4096); c.Ptr == at {
		t.Error("memory that another stream still uses was allocated again")
	}
	check(t, d.Copy.Sync())
	// The allocator may first return other cached memory.
	for range smallSegment/4096 + 1 {
		if c := alloc(t, d.Compute, 4096); c.Ptr == at {
			return
		}
	}
	t.Error("memory is not reused after the other stream has passed its use")
}

// Adjacent free blocks are merged, so that memory does not stay fragmented.
func TestFragmentsJoin(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	r := rand.New(rand.NewPCG(5, 6))
	var all []*Buffer
	for range 2000 {
		if len(all) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(all))
			all[i].Free()
			all[i].Free() // has no effect
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
			t.Errorf("a segment of %d bytes stays fragmented; its first block has %d bytes", seg.size, seg.first.size)
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
			// The device continues to work, and freed memory is usable even if the cache holds it
			// for another size.
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

// With Exact, a memory checker detects an access one element past a buffer; otherwise the access
// stays within a segment of the cache.
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

// Batches whose sizes differ by a few percent reuse each other's memory, because sizes are rounded
// up. If there is no room for the rounding, an allocation takes exactly its size, and so do
// allocations that stay.
func TestSizesThatVary(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{Memory: 512 << 20})
	d := open(t, Options{Limit: 300 << 20})
	var calls int64
	for _, mb := range []int64{97, 99, 103, 98, 104} {
		alloc(t, d.Compute, mb<<20).Free()
		if n := d.Memory().Calls; calls != 0 && n != calls {
			t.Errorf("%d MB: %d calls of the driver, before it %d", mb, n, calls)
		}
		calls = d.Memory().Calls
	}
	stays, err := d.Alloc(Features, 194<<20)
	check(t, err)
	if n := d.Memory().Held[Features]; n != 194<<20 {
		t.Errorf("%d bytes are held for an allocation of %d", n, stays.Bytes)
	}
	check(t, d.Err())
	tight := alloc(t, d.Sampling, 106<<20) // rounded up it would take 112 MB, for which there is no room
	tight.Free()
	stays.Free()
}

// With several ranks, the default limit leaves more of the device to the libraries.
func TestRanksLeaveRoom(t *testing.T) {
	if fakegpu.Real() {
		t.Skip("needs devices of several sizes")
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
