//go:build mpi

package mpi

// #include "messages.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
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

	// Of the collective under way, for the thread.
	steps []collective.Step
	group *C.gnb_group
	pins  *runtime.Pinner
	done  chan error
}

var errAborted = errors.New("mpi: the communicator was aborted")

func (e *engine) newLink(rank int, ranks []int, tag int) *link {
	return &link{
		engine: e, tag: C.int(tag), rank: rank, ranks: ranks, aborted: &atomic.Bool{},
		group: C.gnb_group_new(), pins: &runtime.Pinner{}, done: make(chan error, 1),
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
	if l.aborted.Load() {
		return errAborted
	}
	l.steps = steps
	l.engine.thread.starts <- l
	return <-l.done
}

// advance makes the next steps of the collective under way, whose messages err has failed, if it is
// not nil. It reports whether the collective has ended, after it has told the goroutine that waits.
func (l *link) advance(err error) (ended bool) {
	if err == nil && l.aborted.Load() {
		err = errAborted
	}
	for err == nil && l.group.left == 0 {
		l.pins.Unpin()
		if len(l.steps) == 0 {
			l.done <- nil
			return true
		}
		step := l.steps[0]
		l.steps = l.steps[1:]
		var send, recv [][]byte
		if send, recv, err = step(); err == nil {
			err = l.start(send, recv)
		}
	}
	if err == nil {
		return false
	}
	l.abandon()
	l.steps = nil
	l.done <- err
	return true
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
