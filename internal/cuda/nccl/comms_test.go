//go:build cuda && linux && cgo

package nccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// member is a rank in this process, with its device and communicators.
type member struct {
	rank int
	d    *cuda.Device
	c    []*Comm
}

// team opens world ranks with n communicators each.
func team(t *testing.T, world, n int, o Options) []*member {
	t.Helper()
	if fakegpu.Real() {
		t.Skip("needs several devices")
	}
	fakegpu.New(t, fakegpu.Config{Devices: world, NoRaces: true})
	ids := make([]ID, n)
	for i := range ids {
		var err error
		if ids[i], err = NewID(o); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]*member, world)
	each(all, func(r int) {
		d, err := cuda.Open(cuda.Options{Device: r, Rank: r})
		if err != nil {
			t.Error(err)
			return
		}
		all[r] = &member{rank: r, d: d}
		for _, id := range ids {
			c, err := Open(t.Context(), d, id, r, world, o)
			if err != nil {
				t.Error(err)
				return
			}
			all[r].c = append(all[r].c, c)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// each runs f for all ranks at the same time.
func each(all []*member, f func(rank int)) {
	var wg sync.WaitGroup
	for r := range all {
		wg.Go(func() { f(r) })
	}
	wg.Wait()
}

// ends fails the test if f does not return within 15 seconds.
func ends(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// Exchange moves rows between all pairs of ranks, of different lengths, including none and more
// than the library moves at once, next to sums of another communicator. It also works with a
// library that is too old to join without blocking.
func TestExchange(t *testing.T) {
	for name, args := range map[string][]string{"new": nil, "2.10": {"-DVERSION=21003"}} {
		t.Run(name, func(t *testing.T) {
			const world = 3
			length := func(from, to int) int {
				if from == 2 && to == 0 || from == to {
					return 0
				}
				return 9000*from + 7*to + 1
			}
			all := team(t, world, 2, Options{Library: fakelibs.Build(t, "nccl", args...)})
			each(all, func(r int) {
				m := all[r]
				sums, rows := m.c[0], m.c[1]
				send, receive := make([]Floats, world), make([]Floats, world)
				one, err := m.d.Alloc(cuda.Params, 4)
				for p := range world {
					out, in := length(r, p), length(p, r)
					x, e := m.d.Alloc(cuda.Params, int64(4*max(out, 1)))
					err = errors.Join(err, e)
					y, e := m.d.Alloc(cuda.Params, int64(4*max(in, 1)))
					if err = errors.Join(err, e); err != nil {
						t.Error(err)
						return
					}
					host := make([]float32, out)
					for i := range host {
						host[i] = float32(1000*r + 100*p + i%97)
					}
					if err = errors.Join(err, cuda.CopyIn(m.d.Compute, x.Ptr, host)); err != nil {
						t.Error(err)
						return
					}
					send[p], receive[p] = Floats{x.Ptr, out}, Floats{y.Ptr, in}
				}
				for step := range 3 {
					if err := cuda.CopyIn(m.d.Compute, one.Ptr, []float32{float32(r + step)}); err != nil {
						t.Error(err)
					}
					rows.Exchange(m.d.Compute, send, receive)
					sums.AllReduce(m.d.Compute, one.Ptr, 1)
				}
				var sum [1]float32
				if err := cuda.CopyOut(m.d.Compute, sum[:], one.Ptr); err != nil || sum[0] != 0+1+2+3*2 {
					t.Errorf("rank %d: sum %v, %v", r, sum, err)
				}
				for p := range world {
					got := make([]float32, length(p, r))
					if err := cuda.CopyOut(m.d.Compute, got, receive[p].At); err != nil {
						t.Error(err)
					}
					for i, v := range got {
						if want := float32(1000*p + 100*r + i%97); v != want {
							t.Errorf("rank %d: element %d of rank %d is %v, want %v", r, i, p, v, want)
							break
						}
					}
				}
			})
			each(all, func(r int) {
				if err := all[r].d.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Two ranks that launch the operations of two communicators in different orders would deadlock in
// NCCL. The test library detects this, for sums and for exchanges, and reports nothing if the
// orders are the same.
func TestDifferentOrders(t *testing.T) {
	testneed.NotShort(t, "it starts processes")
	lib := fakelibs.Build(t, "nccl")
	for name, c := range map[string]struct {
		flip     bool
		exchange bool
	}{"sums": {true, false}, "exchange and sum": {true, true}, "one order": {false, true}} {
		t.Run(name, func(t *testing.T) {
			all := team(t, 2, 2, Options{Library: lib})
			errs := make([]error, 2)
			ends(t, "the ranks' operations", func() {
				each(all, func(r int) {
					m := all[r]
					b, err := m.d.Alloc(cuda.Params, 64)
					if err == nil {
						err = cuda.CopyIn(m.d.Compute, b.Ptr, make([]float32, 16))
					}
					if err != nil {
						t.Error(err)
						return
					}
					put := []func(){
						func() { m.c[0].AllReduce(m.d.Compute, b.Ptr, 1) },
						func() { m.c[1].AllReduce(m.d.Compute, b.Ptr+4, 1) },
					}
					if c.exchange {
						put[1] = func() {
							m.c[1].Exchange(m.d.Compute, []Floats{{b.Ptr + 8, 2}, {b.Ptr + 8, 2}}, []Floats{{b.Ptr + 16, 2}, {b.Ptr + 16, 2}})
						}
					}
					if c.flip && r == 1 {
						slices.Reverse(put)
					}
					for _, f := range put {
						f()
					}
					errs[r] = m.d.Compute.Sync()
				})
			})
			found := 0
			for r, err := range errs {
				if (err != nil) != c.flip {
					t.Errorf("rank %d: %v", r, err)
				}
				if err != nil && strings.Contains(err.Error(), "launch the operations of their communicators in different orders") {
					found++
				}
			}
			if c.flip && found == 0 {
				t.Errorf("no rank reports the different orders: %v", errs)
			}
			ends(t, "closing", func() { each(all, func(r int) { _ = all[r].d.Close() }) })
		})
	}
}

// If Options.Ended reports that the run has ended elsewhere, a rank's waits end with that reason: a
// sum in which another rank takes no part, and joining a rank that never joins. Closing does not
// wait for a library whose abort does not return.
func TestEndedElsewhere(t *testing.T) {
	testneed.NotShort(t, "it waits for a rank that has ended")
	over := errors.New("rank 1 (host2) has left")
	for _, plan := range []string{"hang:1:3", "never:1", "stuck"} {
		t.Run(plan, func(t *testing.T) {
			t.Setenv("FAKE_NCCL", plan)
			t.Setenv("TMPDIR", t.TempDir())
			lib := fakelibs.Build(t, "nccl")
			ended := make(chan struct{})
			o := Options{Library: lib, Ended: func() error {
				select {
				case <-ended:
					return over
				default:
					return nil
				}
			}}
			if plan == "never:1" {
				fakegpu.New(t, fakegpu.Config{})
				id, err := NewID(o)
				if err != nil {
					t.Fatal(err)
				}
				d, err := cuda.Open(cuda.Options{})
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(100*time.Millisecond, func() { close(ended) })
				ends(t, "joining", func() {
					if _, err := Open(t.Context(), d, id, 0, 2, o); !errors.Is(err, over) || !strings.Contains(err.Error(), "rank 0 waits for the other 1 ranks") {
						t.Errorf("%v", err)
					}
				})
				ends(t, "closing", func() { _ = d.Close() })
				return
			}
			all := team(t, 2, 2, o)
			var errs [2]error
			ends(t, "a sum", func() {
				each(all, func(r int) {
					m := all[r]
					b, err := m.d.Alloc(cuda.Params, 4)
					if err == nil {
						err = cuda.CopyIn(m.d.Compute, b.Ptr, []float32{1})
					}
					for i := 0; err == nil && i < 3; i++ {
						if i == 2 && r == 1 {
							close(ended)
							if plan == "stuck" {
								return // rank 1 takes no part in the last sum
							}
						}
						m.c[0].AllReduce(m.d.Compute, b.Ptr, 1)
						err = m.d.Compute.Sync()
					}
					errs[r] = err
				})
			})
			if !errors.Is(errs[0], over) || !strings.Contains(errs[0].Error(), "waiting for 2 ranks by NCCL") {
				t.Errorf("%v", errs[0])
			}
			ends(t, "closing", func() { each(all, func(r int) { _ = all[r].d.Close() }) })
		})
	}
}

// Remote is true only for errors that another rank causes, not for a refusal by this rank's
// library.
func TestRemote(t *testing.T) {
	for code, want := range map[int]bool{1: false, 2: false, 5: false, 6: true} {
		var s interface{ Remote() bool }
		if err := fmt.Errorf("device: %w", Status{Code: code}); !errors.As(err, &s) || s.Remote() != want {
			t.Errorf("code %d: %v", code, s.Remote())
		}
	}
}

// Open returns when its context ends, with any version of the library, and the device closes.
func TestOpenEndsInTime(t *testing.T) {
	testneed.NotShort(t, "it waits for a rank that never comes")
	for name, args := range map[string][]string{"new": nil, "2.10": {"-DVERSION=21003"}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			o := Options{Library: fakelibs.Build(t, "nccl", args...)}
			fakegpu.New(t, fakegpu.Config{})
			id, err := NewID(o)
			if err != nil {
				t.Fatal(err)
			}
			d, err := cuda.Open(cuda.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("too late"))
			defer cancel()
			ends(t, "joining", func() {
				if _, err := Open(ctx, d, id, 0, 2, o); err == nil || !strings.Contains(err.Error(), "too late") {
					t.Errorf("%v", err)
				}
			})
			ends(t, "closing", func() { _ = d.Close() })
		})
	}
}
