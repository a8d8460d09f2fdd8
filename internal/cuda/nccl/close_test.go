//go:build cuda && linux && cgo

package nccl

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// spy is a library that records its calls. If hang is set, a sum blocks until abort.
type spy struct {
	mu    sync.Mutex
	calls []string
	hang  chan struct{} // closed by abort
	in    chan struct{} // closed by a sum that is about to block
	lost  error
}

func (s *spy) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *spy) version() (int, error)                              { return 22105, nil }
func (s *spy) newID() (ID, error)                                 { return ID{}, nil }
func (s *spy) open(ID, int, int) (uintptr, error)                 { return 1, nil }
func (s *spy) asyncError(uintptr) error                           { return s.lost }
func (s *spy) destroy(uintptr) error                              { s.note("destroy"); return nil }
func (s *spy) exchange(_, _ uintptr, _ []part) error              { return nil }
func (s *spy) broadcast(_, _ uintptr, _ cuda.Ptr, _, _ int) error { return nil }

func (s *spy) allReduce(_, _ uintptr, _ cuda.Ptr, _ int) error {
	if s.hang != nil {
		close(s.in)
		<-s.hang
	}
	return nil
}

func (s *spy) abort(uintptr) error {
	s.note("abort")
	if s.hang != nil {
		close(s.hang)
	}
	return nil
}

func spied(t *testing.T, s *spy) (*cuda.Device, *Comm) {
	t.Helper()
	fakegpu.New(t, fakegpu.Config{})
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Comm{d: d, lib: s, world: 2, comm: 1, stop: make(chan struct{})}
	d.OnClose(c.close)
	return d, c
}

// A device that is closed without a failure destroys its communicator and does not abort it,
// because other ranks may still need it.
func TestCleanCloseDestroys(t *testing.T) {
	s := &spy{}
	d, c := spied(t, s)
	c.watch.Go(c.watchErrors)
	c.AllReduce(d.Compute, 0, 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.calls, []string{"destroy"}) {
		t.Errorf("the calls of the library are %v, want only destroy", s.calls)
	}
}

// A device that failed aborts its communicator once.
func TestCloseAfterFailureAborts(t *testing.T) {
	s := &spy{}
	d, c := spied(t, s)
	c.watch.Go(c.watchErrors)
	d.Fail("a test", errors.New("it broke"), "")
	if err := d.Close(); err == nil {
		t.Error("Close does not report the device's failure")
	}
	if !slices.Equal(s.calls, []string{"abort"}) {
		t.Errorf("the calls of the library are %v, want only abort", s.calls)
	}
}

// A sum that waits in NCCL for a lost rank ends when the communicator is aborted: by a caller of
// Abort, or by the goroutine that finds NCCL's error.
func TestAbortReachesABlockedSum(t *testing.T) {
	for name, lost := range map[string]error{"asked for": nil, "found": Status{Code: 6, Text: "remote process exited"}} {
		t.Run(name, func(t *testing.T) {
			s := &spy{hang: make(chan struct{}), in: make(chan struct{}), lost: lost}
			d, c := spied(t, s)
			c.AllReduce(d.Compute, 0, 1)
			<-s.in
			if lost == nil {
				c.Abort()
			}
			c.watch.Go(c.watchErrors)
			closed := make(chan error, 1)
			go func() { closed <- d.Close() }()
			select {
			case err := <-closed:
				if (err == nil) != (lost == nil) {
					t.Errorf("closing: %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the device does not close")
			}
			if !slices.Equal(s.calls, []string{"abort"}) {
				t.Errorf("the calls of the library are %v, want only abort", s.calls)
			}
		})
	}
}
