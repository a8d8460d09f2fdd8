package collective

import (
	"fmt"
	"sync/atomic"
)

// turn lets one goroutine at a time into the collectives of a Comm, and none after an error or
// Close.
type turn struct {
	rank   int
	busy   atomic.Bool
	closed bool
	err    error
}

// begin and end bracket a collective.
func (t *turn) begin(s Site) error {
	if !t.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("collective: rank %d calls %v while another goroutine is in a collective; only one goroutine at a time may call", t.rank, s)
	}
	if t.closed {
		t.busy.Store(false)
		return fmt.Errorf("collective: %v: %w", s, ErrClosed)
	}
	if t.err != nil {
		t.busy.Store(false)
		return t.err
	}
	return nil
}

func (t *turn) end(err *error) {
	if *err != nil && t.err == nil {
		t.err = *err
	}
	t.busy.Store(false)
}

// close runs free once, and not while a collective is under way.
func (t *turn) close(free func() error) error {
	if !t.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("collective: rank %d is closed while a collective is under way", t.rank)
	}
	defer t.busy.Store(false)
	if t.closed {
		return nil
	}
	err := free()
	t.closed = err == nil
	return err
}
