package cuda

import (
	"sync"
	"unsafe"
)

// maxArgs is the maximum number of a kernel's parameters.
const maxArgs = 32

// queueLen is the maximum number of waiting commands, several batches' worth; put waits if the
// queue is full.
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

// command is one instruction to the device's goroutine. It is stored in the queue's own memory, so
// that put allocates nothing.
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

// call is a command of any other kind, for which the caller waits.
type call struct {
	op     string
	f      func() error
	own    bool // the error Unknown is the call's own and not a failure of the device
	always bool // executed even after a failure, to free resources
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

// put makes fill write the next command. It returns false if the queue is closed. fill must not
// block.
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

// run executes the commands one by one until the queue is closed and empty.
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
		q.mu.Unlock() // no goroutine writes c before head has passed it
		execute(c)
		*c = command{args: c.args} // drops references; the arguments are numbers
		q.mu.Lock()
		q.head++
		q.notFull.Signal()
	}
}

// close refuses further commands. The waiting ones are executed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
	q.notFull.Broadcast()
}
