//go:build cuda && linux && cgo

package nccl

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/cuda"
	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
)

// spy is a library that notes its calls. A sum blocks until giving up, where hang is set.
type spy struct {
	mu    sync.Mutex
	calls []string
	hang  chan struct{} // closed by abort
	in    chan struct{} // closed by a sum that hangs
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

// A device that is closed in peace leaves its group in peace: what others still need of it is not cut off.
func TestCleanCloseDestroys(t *testing.T) {
	s := &spy{}
	d, c := spied(t, s)
	c.watch.Go(c.watchErrors)
	c.AllReduce(d.Compute, 0, 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.calls, []string{"destroy"}) {
		t.Errorf("the library was called %v, want destroy alone", s.calls)
	}
}

// A device that failed gives its group up, once.
func TestCloseAfterFailureAborts(t *testing.T) {
	s := &spy{}
	d, c := spied(t, s)
	c.watch.Go(c.watchErrors)
	d.Fail("a test", errors.New("it broke"), "")
	if err := d.Close(); err == nil {
		t.Error("a device that failed closed without a word")
	}
	if !slices.Equal(s.calls, []string{"abort"}) {
		t.Errorf("the library was called %v, want abort alone", s.calls)
	}
}

// A sum that waits within NCCL for a rank which is lost ends when the group is given up, by who asks for
// that or by who finds the error.
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
				t.Errorf("the library was called %v, want abort alone", s.calls)
			}
		})
	}
}
