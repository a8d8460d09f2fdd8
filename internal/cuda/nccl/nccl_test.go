//go:build cuda && linux && cgo

package nccl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/cuda/libs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// rank runs one rank: a sum and a broadcast of more values than the library moves at once.
func rank(d *cuda.Device, c *Comm, rank int) (sum, sent float32, err error) {
	const n = 70_001
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((rank + 1) * (i%7 + 1))
	}
	b, err := d.Alloc(cuda.Params, 4*n)
	if err != nil {
		return 0, 0, err
	}
	defer b.Free()
	if err := cuda.CopyIn(d.Compute, b.Ptr, x); err != nil {
		return 0, 0, err
	}
	c.AllReduce(d.Compute, b.Ptr, n)
	if err := cuda.CopyOut(d.Compute, x, b.Ptr); err != nil {
		return 0, 0, err
	}
	for i, v := range x {
		if v != x[i%7] {
			return 0, 0, fmt.Errorf("element %d is %v, and element %d is %v", i, v, i%7, x[i%7])
		}
	}
	sum = x[n-1]
	d.Compute.Fill32(b.Ptr, math.Float32bits(float32(rank)), n)
	c.Broadcast(d.Compute, b.Ptr, n, 1)
	err = cuda.CopyOut(d.Compute, x, b.Ptr)
	return sum, x[n-1], err
}

// Ranks in separate processes, like the workers of a run, get the right sum and broadcast.
func TestBetweenProcesses(t *testing.T) {
	testneed.NotShort(t, "it starts processes")
	if text := os.Getenv("GNB_TEST_RANK"); text != "" {
		r, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		world, err := strconv.Atoi(os.Getenv("GNB_TEST_WORLD"))
		if err != nil {
			t.Fatal(err)
		}
		id, err := ParseID(os.Getenv("GNB_TEST_ID"))
		if err != nil {
			t.Fatal(err)
		}
		fakegpu.New(t, fakegpu.Config{Devices: world})
		d, err := cuda.Open(cuda.Options{Device: r, Rank: r})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), d, id, r, world, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sum, sent, err := rank(d, c, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("rank %d: sum %v, sent %v\n", r, sum, sent)
		return
	}
	if fakegpu.Real() {
		t.Skip("needs several devices")
	}
	lib := fakelibs.Build(t, "nccl")
	id, err := NewID(Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	for _, world := range []int{2, 4} {
		var wg sync.WaitGroup
		for r := range world {
			wg.Go(func() {
				c := exec.Command(os.Args[0], "-test.run=^TestBetweenProcesses$")
				c.Env = append(os.Environ(), "GNB_TEST_RANK="+strconv.Itoa(r), "GNB_TEST_WORLD="+strconv.Itoa(world), "GNB_TEST_ID="+id.String(), "GNB_LIBNCCL="+lib)
				out, err := c.CombinedOutput()
				// 70 001 = 7·10 000 + 1, so the last element equals the first, whose sum over the ranks is 1+2+….
				want := fmt.Sprintf("rank %d: sum %d, sent 1\n", r, world*(world+1)/2)
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("world %d, rank %d: %v\n%s\nwant %s", world, r, err, out, want)
				}
			})
		}
		wg.Wait()
	}
}

// A single rank joins, sums and broadcasts, with the real library on a real device, and keeps its
// values.
func TestOneRank(t *testing.T) {
	lib := fakelibs.Build(t, "nccl")
	fakegpu.New(t, fakegpu.Config{})
	if fakegpu.Real() {
		if _, err := libs.Find(libs.NCCL, 0); err != nil {
			t.Skip(err)
		}
	}
	id, err := NewID(Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), d, id, 0, 1, Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{1, -2, 0.5}
	b, err := d.Alloc(cuda.Params, 4*int64(len(x)))
	if err == nil {
		err = cuda.CopyIn(d.Compute, b.Ptr, x)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.AllReduce(d.Compute, b.Ptr, len(x))
	c.Broadcast(d.Compute, b.Ptr, len(x), 0)
	y := make([]float32, len(x))
	if err := cuda.CopyOut(d.Compute, y, b.Ptr); err != nil || !slices.Equal(x, y) {
		t.Errorf("the values %v of one rank become %v (%v)", x, y, err)
	}
	b.Free()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// pair opens two ranks in this process.
func pair(t *testing.T, lib string) (d [2]*cuda.Device, c [2]*Comm) {
	t.Helper()
	fakegpu.New(t, fakegpu.Config{Devices: 2})
	id, err := NewID(Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r := range d {
		wg.Go(func() {
			var err error
			if d[r], err = cuda.Open(cuda.Options{Device: r, Rank: r}); err != nil {
				t.Error(err)
				return
			}
			if c[r], err = Open(t.Context(), d[r], id, r, 2, Options{Library: lib}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return d, c
}

// If NCCL reports a lost rank, both devices fail with an error that names their rank, and closing
// returns that error.
func TestRemoteError(t *testing.T) {
	t.Setenv("FAKE_NCCL", "async:1:2")
	d, c := pair(t, fakelibs.Build(t, "nccl"))
	var wg sync.WaitGroup
	for r := range d {
		wg.Go(func() {
			b, err := d[r].Alloc(cuda.Params, 4)
			if err == nil {
				err = cuda.CopyIn(d[r].Compute, b.Ptr, []float32{1})
			}
			for i := 0; err == nil && i < 5; i++ {
				c[r].AllReduce(d[r].Compute, b.Ptr, 1)
				err = d[r].Compute.Sync()
			}
			var typed *cuda.Error
			if !errors.As(err, &typed) || typed.Rank != r || !strings.Contains(err.Error(), "by NCCL: NCCL: remote process exited") {
				t.Errorf("rank %d: %v", r, err)
			}
			if again := d[r].Close(); again != err {
				t.Errorf("rank %d: closing: %v", r, again)
			}
		})
	}
	wg.Wait()
}

// If a rank never takes part in a sum, Abort on the other rank ends its wait.
func TestAbort(t *testing.T) {
	t.Setenv("FAKE_NCCL", "hang:1:1") // the first sum connects the ranks
	d, c := pair(t, fakelibs.Build(t, "nccl"))
	b, err := d[0].Alloc(cuda.Params, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := cuda.CopyIn(d[0].Compute, b.Ptr, []float32{1}); err != nil {
		t.Fatal(err)
	}
	c[0].AllReduce(d[0].Compute, b.Ptr, 1)
	waited := make(chan error)
	go func() { waited <- d[0].Compute.Sync() }()
	select {
	case err := <-waited:
		t.Errorf("a sum without the other rank ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	c[0].Abort()
	<-waited
	for r := range d {
		if err := d[r].Close(); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// If ranks join but do not connect, Open returns when its context ends, and the device closes.
func TestOpenDoesNotConnect(t *testing.T) {
	testneed.NotShort(t, "it waits two seconds")
	t.Setenv("FAKE_NCCL", "hang:1:0")
	lib := fakelibs.Build(t, "nccl")
	fakegpu.New(t, fakegpu.Config{Devices: 2})
	id, err := NewID(Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("the ranks do not answer"))
	defer cancel()
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() {
			d, err := cuda.Open(cuda.Options{Device: r, Rank: r})
			if err != nil {
				t.Error(err)
				return
			}
			_, err = Open(ctx, d, id, r, 2, Options{Library: lib})
			if err == nil || !strings.Contains(err.Error(), "the ranks do not answer") {
				t.Errorf("rank %d: %v", r, err)
			}
			if err := d.Close(); err != nil {
				t.Errorf("rank %d: closing: %v", r, err)
			}
		})
	}
	wg.Wait()
}

func TestOpenFails(t *testing.T) {
	testneed.NotShort(t, "it starts processes")
	if fakegpu.Real() {
		t.Skip("needs a simulated library with a fault or of another version")
	}
	fakegpu.New(t, fakegpu.Config{})
	t.Setenv("TMPDIR", t.TempDir()) // the test library leaves a file there if the other rank never joins
	lib := fakelibs.Build(t, "nccl")
	id, err := NewID(Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseID(id.String())
	if err != nil || again != id {
		t.Errorf("ParseID of an id's text gives another id (%v)", err)
	}
	for name, c := range map[string]struct {
		o     Options
		fake  string
		rank  int
		words []string
	}{
		"no library": {Options{Library: "/nowhere/libnccl.so.2"}, "", 0, []string{"loading /nowhere"}},
		"another":    {Options{Library: fakelibs.Build(t, "cublas")}, "", 0, []string{"has no nccl", "another version"}},
		"old":        {Options{Library: fakelibs.Build(t, "nccl", "-DVERSION=20708")}, "", 0, []string{"version 2.7.8", "2.10 or newer"}},
		"ctx":        {Options{Library: lib}, "", 0, []string{"rank 0 waits for the other 1 ranks"}},
		"refuses":    {Options{Library: lib}, "init", 1, []string{"device 0", "rank 1", "joining the group of 2 ranks", "unhandled system error: no socket interface found"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKE_NCCL", c.fake)
			d, err := cuda.Open(cuda.Options{Rank: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx := t.Context()
			if name == "ctx" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			got, err := Open(ctx, d, id, c.rank, 2, c.o)
			if got != nil || err == nil {
				t.Fatalf("%v, %v", got, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}
