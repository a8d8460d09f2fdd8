//go:build mpi

package mpi

// #include "messages.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// pieceBytes is the longest message: MPI counts in C's int.
var pieceBytes = 1 << 30

// link carries the messages of one channel of a Comm. Its tag is its own, so messages that an
// aborted collective has left behind never reach another one.
type link struct {
	engine  *engine
	tag     C.int
	rank    int
	ranks   []int // their numbers in MPI, by rank
	aborted *atomic.Bool

	// Of the exchange under way.
	group *C.gnb_group
	pins  *runtime.Pinner
}

var errAborted = errors.New("mpi: the communicator was aborted")

func (e *engine) newLink(rank int, ranks []int, tag int) *link {
	return &link{
		engine: e, tag: C.int(tag), rank: rank, ranks: ranks, aborted: &atomic.Bool{},
		group: C.gnb_group_new(), pins: &runtime.Pinner{},
	}
}

func (l *link) Rank() int { return l.rank }
func (l *link) Size() int { return len(l.ranks) }
func (l *link) Abort()    { l.aborted.Store(true) }

func (l *link) Split() collective.Link {
	s := l.engine.newLink(l.rank, l.ranks, int(l.tag)+1)
	s.aborted = l.aborted
	return s
}

func (l *link) Close() error {
	C.gnb_group_free(l.group)
	l.group = nil
	return nil
}

func (l *link) Run(steps ...collective.Step) error {
	l.engine.running.Add(1)
	defer l.engine.running.Add(-1)
	for _, step := range steps {
		if l.aborted.Load() {
			return errAborted
		}
		send, recv, err := step()
		if err == nil {
			err = l.exchange(send, recv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A goroutine polls without a pause at first, in calls of spinMicros, and then with naps, counted
// from the last message that arrived or left. Between busy ranks a message takes some microseconds;
// waiting for a late rank takes much longer. If there are more ranks than processors, others run
// between two polls. A long nap frees the processor for the goroutines of this process too.
const (
	spinFor       = 100 * time.Microsecond
	spinMicros    = 50
	spinMicrosFew = 10 // if other ranks need the processor, or the other channel needs MPI
	napMicros     = 50
	napFor        = 10 * time.Millisecond
	napLong       = time.Millisecond
)

// exchange sends and receives messages, and returns when all transfers are complete.
func (l *link) exchange(send, recv [][]byte) error {
	e := l.engine
	e.calls.Lock()
	err := l.start(send, recv)
	e.calls.Unlock()
	for last := time.Now(); err == nil && l.group.left > 0; {
		waited, left := time.Since(last), l.group.left
		both := e.running.Load() > 1
		spin := spinMicros
		switch {
		case waited > spinFor:
			spin = 0
		case both || e.crowded:
			spin = spinMicrosFew
		}
		err = l.poll(spin)
		switch {
		case l.group.left < left:
			last = time.Now()
		case waited > napFor:
			time.Sleep(napLong)
		case waited > spinFor:
			C.gnb_nap(napMicros) // time.Sleep takes longer
			runtime.Gosched()
		case both:
			runtime.Gosched()
		}
	}
	if err != nil {
		e.calls.Lock()
		l.abandon()
		e.calls.Unlock()
		return err
	}
	l.pins.Unpin()
	return nil
}

// poll completes messages, for at most so many microseconds without one.
func (l *link) poll(spin int) error {
	if l.aborted.Load() {
		return errAborted
	}
	e, yields := l.engine, C.int(0)
	if e.crowded {
		yields = 1
	}
	e.calls.Lock()
	defer e.calls.Unlock()
	if rc := C.gnb_poll(l.group, C.int(spin), yields); rc != C.MPI_SUCCESS {
		return l.failure("completing", rc)
	}
	return nil
}

// start begins the messages of a step: first the receives, so that what arrives has its place. Each
// rank begins with its neighbours, so that not all send to the same one.
func (l *link) start(send, recv [][]byte) error {
	world := len(l.ranks)
	for first := 0; first < len(recv); first += world {
		for i := 1; i < world; i++ {
			r := (l.rank + world - i) % world
			if b := recv[first+r]; len(b) > 0 {
				l.pins.Pin(&b[0])
				if rc := C.gnb_recv(l.group, unsafe.Pointer(&b[0]), C.size_t(len(b)), C.size_t(pieceBytes), C.int(l.ranks[r]), l.tag, l.engine.comm); rc != C.MPI_SUCCESS {
					return l.failure("MPI_Irecv", rc)
				}
			}
		}
	}
	for first := 0; first < len(send); first += world {
		for i := 1; i < world; i++ {
			r := (l.rank + i) % world
			if b := send[first+r]; len(b) > 0 {
				l.pins.Pin(&b[0])
				l.engine.sent += int64(len(b))
				if rc := C.gnb_send(l.group, unsafe.Pointer(&b[0]), C.size_t(len(b)), C.size_t(pieceBytes), C.int(l.ranks[r]), l.tag, l.engine.comm); rc != C.MPI_SUCCESS {
					return l.failure("MPI_Isend", rc)
				}
			}
		}
	}
	return nil
}

// failure is the error of a call of MPI.
func (l *link) failure(call string, rc C.int) error {
	peer := "another rank"
	for r, number := range l.ranks {
		if number == int(l.group.failed) {
			peer = fmt.Sprintf("rank %d", r)
		}
	}
	if l.group.got >= 0 {
		return fmt.Errorf("mpi: %s sent %d bytes where %d were expected; the ranks do not run the same program", peer, int(l.group.got), int(l.group.wanted))
	}
	return fmt.Errorf("mpi: %s a message with %s failed in %s: %s", call, peer, l.engine.Name(), errorText(rc))
}

// abandon gives up the messages under way. MPI may still read or write their memory, so it stays
// pinned until the process ends.
func (l *link) abandon() {
	if l.group.left > 0 {
		C.gnb_cancel(l.group)
		l.engine.pinned = append(l.engine.pinned, l.pins)
		l.pins = &runtime.Pinner{}
		return
	}
	l.pins.Unpin()
}
