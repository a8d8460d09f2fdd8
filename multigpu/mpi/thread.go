//go:build mpi

package mpi

// #include <sched.h>
// #include "messages.h"
import "C"

import (
	"runtime"
	"slices"
	"time"
)

// thread is the goroutine, locked to a thread of the system, that makes all calls of MPI.
type thread struct {
	calls   chan func()
	starts  chan *link
	active  []*link
	crowded bool // there are more ranks than processors
}

// The thread polls for messages without a pause at first, and then with naps, counted from the last
// message that arrived. Between ranks at work a message takes some microseconds; a rank that comes
// later takes much longer. A long nap frees the processor for the goroutines of this process too.
const (
	spinFor        = 100 * time.Microsecond
	spinForCrowded = 10 * time.Microsecond
	napMicros      = 50
	napFor         = 10 * time.Millisecond
	napLong        = time.Millisecond
)

func newThread() *thread {
	t := &thread{calls: make(chan func()), starts: make(chan *link)}
	go t.serve()
	return t
}

// do runs f on the thread.
func (t *thread) do(f func()) {
	done := make(chan struct{})
	t.calls <- func() { defer close(done); f() }
	<-done
}

// stop ends the thread, after MPI has ended.
func (t *thread) stop() { close(t.calls) }

func (t *thread) serve() {
	runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
	spin := spinFor
	long := time.NewTimer(time.Hour)
	defer long.Stop()
	last := time.Now()
	for {
		if len(t.active) == 0 {
			select {
			case f, ok := <-t.calls:
				if !ok {
					return
				}
				f()
			case l := <-t.starts:
				t.active = append(t.active, l)
			}
			last = time.Now()
		}
		if t.crowded {
			spin = spinForCrowded
		}
		moved := false
		t.active = slices.DeleteFunc(t.active, func(l *link) bool {
			m, done := l.poll()
			moved = moved || m
			return done
		})
		waited := time.Since(last)
		if moved {
			last, waited = last.Add(waited), 0
		}
		var wake <-chan time.Time
		switch {
		case waited < spin:
			if t.crowded {
				C.sched_yield()
			}
			runtime.Gosched()
		case waited < napFor:
			C.gnb_nap(napMicros)
			runtime.Gosched()
		default:
			long.Reset(napLong)
			wake = long.C
		}
		t.take(wake)
	}
}

// take takes on new work that is there, or waits for it until wake.
func (t *thread) take(wake <-chan time.Time) {
	if wake == nil {
		select {
		case f, ok := <-t.calls:
			if ok {
				f()
			}
		case l := <-t.starts:
			t.active = append(t.active, l)
		default:
		}
		return
	}
	select {
	case f, ok := <-t.calls:
		if ok {
			f()
		}
	case l := <-t.starts:
		t.active = append(t.active, l)
	case <-wake:
	}
}
