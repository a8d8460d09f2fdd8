package cuda

import (
	"sync"
	"unsafe"
)

// maxArgs is the most parameters a kernel can have here.
const maxArgs = 32

// queueLen is how many commands wait at most; who puts one more waits. It is several batches' worth.
const queueLen = 1024

type kind uint8

const (
	doLaunch kind = iota
	doCopyIn
	doCopyOut
	doCopyDev
	doFill32
	doFill8
	doRecord
	doWait
	doSubmit
	doCall
)

// command is one thing for the device's goroutine to do. It lies in the queue's own memory, so that
// putting one allocates nothing.
type command struct {
	kind        kind
	stream      *Stream
	kernel      *kernel
	event       *Event
	grid, block Dim
	shared      int
	nargs       int
	args        [maxArgs]uint64
	dst, src    Ptr
	host        unsafe.Pointer
	n           int64
	value       uint32
	submit      func(stream uintptr) error
	op          string // of submit
	call        *call
}

// call is a command of a general kind; the caller waits for done.
type call struct {
	op     string
	f      func() error
	own    bool // a failure that nobody knows is its own, and not the device's
	always bool // even after a failure: for giving back what is held
	done   chan error
}

// queue is a ring of commands.
type queue struct {
	mu             sync.Mutex
	notFull, ready sync.Cond
	ring           [queueLen]command
	head, tail     uint64 // commands taken, put
	closed         bool
}

func (q *queue) init() {
	q.notFull.L = &q.mu
	q.ready.L = &q.mu
}

// put has fill write the next command; false when the queue is closed. fill must not block.
func (q *queue) put(fill func(*command)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.tail-q.head == queueLen && !q.closed {
		q.notFull.Wait()
	}
	if q.closed {
		return false
	}
	fill(&q.ring[q.tail%queueLen])
	q.tail++
	q.ready.Signal()
	return true
}

// run takes the commands one by one until the queue is closed and empty.
func (q *queue) run(execute func(*command)) {
	q.mu.Lock()
	for {
		for q.head == q.tail && !q.closed {
			q.ready.Wait()
		}
		if q.head == q.tail {
			q.mu.Unlock()
			return
		}
		c := &q.ring[q.head%queueLen]
		q.mu.Unlock() // nobody writes c before head passes it
		execute(c)
		*c = command{args: c.args} // lets go of what it points at; the arguments are numbers
		q.mu.Lock()
		q.head++
		q.notFull.Signal()
	}
}

// close lets no more commands in. Those that wait are executed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
	q.notFull.Broadcast()
}
