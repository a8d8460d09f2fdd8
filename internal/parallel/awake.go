package parallel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Waking a sleeping thread takes 20 to 60 µs, as long as many of a small batch's loops, and up to a
// tick of the kernel's scheduler, 4 ms, if the thread is put on a busy processor. So a helper that
// has finished stays awake briefly for the next loop, and a caller for its last helper: with 50 µs
// instead, a training step on two processors takes 13 % longer. Both yield to other goroutines
// meanwhile.
const awakeFor = time.Millisecond

// A slot is the place of one waiting helper: it holds nil if none waits, &waiting, or the loop that
// was handed to the helper.
type slot struct {
	loop atomic.Pointer[loop]
	_    [56]byte // pads to a separate cache line
}

var (
	slots   [16]slot
	waiting loop
)

// hand passes the loop to a waiting helper, if there is one, and reports whether it did.
func hand(l *loop) bool {
	for i := range slots {
		if s := &slots[i].loop; s.Load() == &waiting && s.CompareAndSwap(&waiting, l) {
			return true
		}
	}
	return false
}

// await returns the loop that is handed to this helper within awakeFor, or nil.
func await() *loop {
	for i := range slots {
		s := &slots[i].loop
		if s.Load() != nil || !s.CompareAndSwap(nil, &waiting) {
			continue
		}
		if !watch(func() bool { return s.Load() != &waiting }) && s.CompareAndSwap(&waiting, nil) {
			return nil
		}
		return s.Swap(nil)
	}
	return nil
}

// watch waits up to awakeFor for done, and reports whether done returned true.
func watch(done func() bool) bool {
	const looks = 256 // about 0.3 µs
	start := time.Now()
	for round := 1; ; round++ {
		for range looks {
			if done() {
				return true
			}
		}
		if round%16 == 0 {
			if time.Since(start) > awakeFor {
				return false
			}
			runtime.Gosched()
		}
	}
}
