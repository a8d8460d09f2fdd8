//go:build mpi

package mpi

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
	groups  []*C.gnb_group // of active
	crowded bool           // there are more ranks than processors
}

// The thread polls without a pause at first, in calls of spinMicros, and then with naps, counted from
// the last message that arrived. Between ranks at work a message takes some microseconds; a rank that
// comes later takes much longer. If there are more ranks than processors, it lets others run between two
// looks. A long nap frees the processor for the goroutines of this process too.
//
// A call does not let goroutines run in between: runtime.Gosched of a locked goroutine switches
// threads twice, which takes longer than most messages.
const (
	spinFor           = 100 * time.Microsecond
	spinMicros        = 50
	spinMicrosCrowded = 10
	napMicros         = 50
	napFor            = 10 * time.Millisecond
	napLong           = time.Millisecond
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
	long := time.NewTimer(time.Hour)
	defer long.Stop()
	var last time.Time // when a message moved, or work began
	for {
		if len(t.active) == 0 {
			if !t.take(nil, true) {
				return
			}
			last = time.Now()
			continue
		}
		waited := time.Since(last)
		spin, yields := 0, C.int(0)
		if waited < spinFor {
			spin = spinMicros
			if t.crowded {
				spin, yields = spinMicrosCrowded, 1
			}
		}
		if t.poll(C.int(spin), yields) {
			last, waited = time.Now(), 0
			if !t.take(nil, false) {
				return
			}
			continue
		}
		var wake <-chan time.Time
		switch {
		case waited < spinFor:
		case waited < napFor:
			C.gnb_nap(napMicros)
			runtime.Gosched()
		default:
			long.Reset(napLong)
			wake = long.C
		}
		if !t.take(wake, wake != nil) {
			return
		}
	}
}

// poll advances the collectives under way. It reports whether any message moved.
func (t *thread) poll(spin, yields C.int) (moved bool) {
	t.groups = t.groups[:0]
	before := 0
	for _, l := range t.active {
		t.groups = append(t.groups, l.group)
		before += int(l.group.left)
	}
	var code C.int
	failed := C.gnb_poll(&t.groups[0], C.int(len(t.groups)), spin, yields, &code)
	for i, l := range t.active {
		before -= int(l.group.left)
		var err error
		if i == int(failed) {
			err = l.failure("completing", code)
		}
		if l.advance(err) {
			t.active[i] = nil
			moved = true
		}
	}
	t.active = slices.DeleteFunc(t.active, func(l *link) bool { return l == nil })
	return moved || before > 0
}

// take takes on new work that is there, or with wait set waits for it, at most until wake. It
// reports whether the thread goes on.
func (t *thread) take(wake <-chan time.Time, wait bool) bool {
	if !wait {
		select {
		case f, ok := <-t.calls:
			return t.call(f, ok)
		case l := <-t.starts:
			t.begin(l)
		default:
		}
		return true
	}
	select {
	case f, ok := <-t.calls:
		return t.call(f, ok)
	case l := <-t.starts:
		t.begin(l)
	case <-wake:
	}
	return true
}

func (t *thread) call(f func(), ok bool) bool {
	if ok {
		f()
	}
	return ok
}

// begin starts a collective.
func (t *thread) begin(l *link) {
	if !l.advance(nil) {
		t.active = append(t.active, l)
	}
}
