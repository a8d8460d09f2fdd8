package plane

import (
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// apart gets the rows of a joint window from a source that is not the ranks, such as servers or a disk. Each rank gets those
// that it asks for beside the ticks, as fast as its source answers, so that a slow source does not keep ranks from telling
// each other what they need. In shared memory it then counts the batch. A batch has its rows when all ranks of the machine
// have counted it.
type apart struct {
	w      *Window
	m      *Machine
	comm   collective.Comm
	me     int           // number in m.Ranks
	got    int64         // tickets that were closed or are to be
	latest chan struct{} // closed when all is there that this rank has asked for; nil at first
	closed chan struct{} // closed when the last ticket is; nil at first
}

// Between two looks at what other ranks have got.
const (
	leastPause = 50 * time.Microsecond
	mostPause  = time.Millisecond
)

// begin gets the rows of ask after those of the asks before, and closes ready of the ticket when all ranks have got theirs.
func (a *apart) begin(ask *asking, t *Ticket) {
	w, before, ready := a.w, a.latest, a.closed
	here, closed := make(chan struct{}), make(chan struct{})
	a.latest, a.closed = here, closed
	w.run.Go(func() {
		defer close(here)
		if before != nil {
			<-before
		}
		if a.ended() {
			return
		}
		if err := w.copyTo(w.slots.chunks, ask.ids, ask.slots); err != nil {
			a.fail(fmt.Errorf("gnb: getting %d rows of features: %w", len(ask.ids), err))
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, at := range ask.slots { // slots of the machine
			w.rows.came(at / int32(len(a.m.Ranks)))
		}
		if !w.closed {
			a.m.Got[a.me].Add(1)
		}
	})
	w.run.Go(func() {
		defer close(closed)
		<-here
		if ready != nil {
			<-ready
		}
		a.got++
		if a.ended() {
			return
		}
		if err := a.await(a.got); err != nil {
			a.fail(err)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.sent) > 0 { // else the window has failed
			w.sent = w.sent[1:]
			close(t.ready)
		}
	})
}

// ended reports whether no batch needs rows any more.
func (a *apart) ended() bool {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return a.w.err != nil && len(a.w.sent) == 0
}

// leave says that this rank gets no more rows. The caller holds the window's lock.
func (a *apart) leave() {
	if n := a.m.Got[a.me].Load(); n >= 0 {
		a.m.Got[a.me].Store(leftAfter(n))
	}
}

// leftAfter turns a number of batches into that of a rank that gets no more, and back.
func leftAfter(n int64) int64 { return -2 - n }

// await returns when all ranks of the machine have the rows of a number of batches.
func (a *apart) await(batches int64) error {
	pause := leastPause
	for i := 0; i < len(a.m.Got); {
		n := a.m.Got[i].Load()
		left := n < -1
		if left {
			n = leftAfter(n)
		}
		switch {
		case n < 0:
			return fmt.Errorf("gnb: rank %d could not %s", a.m.Ranks[i], gettingRows)
		case n >= batches:
			i++
			continue
		case left:
			return fmt.Errorf("gnb: getting rows of features: %w", ErrLeft)
		}
		select {
		case <-a.w.ctx.Done():
			return ErrClosed
		case <-time.After(pause):
		}
		if reason, yes := a.comm.Aborted(); yes {
			return fmt.Errorf("gnb: getting rows of features: %w: %s", collective.ErrAborted, reason)
		}
		pause = min(2*pause, mostPause)
	}
	return nil
}

// fail ends the window with an error. Unless it is closed, the others learn that at their next tick, or from Machine.Got.
func (a *apart) fail(err error) {
	w := a.w
	w.mu.Lock()
	ended := w.closed || w.err != nil
	switch {
	case w.err != nil:
		err = w.err
	case w.closed:
		err = ErrClosed
	case !errors.Is(err, ErrLeft):
		a.m.Got[a.me].Store(-1)
	}
	w.fail(err)
	w.mu.Unlock()
	if !ended {
		w.failed(err)
	}
}
