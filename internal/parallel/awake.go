package parallel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Waking a thread that sleeps takes 20 to 60 µs, as long as many of a small batch's
// loops, and up to a tick of the kernel's scheduler, 4 ms, where it puts the thread
// on the processor that is busy. So a helper that has finished stays awake a moment
// for the next loop, and a caller for the last helper: with 50 µs instead, a training
// step on two processors takes 13 % longer. Both yield to other goroutines meanwhile.
const awakeFor = time.Millisecond

// A slot is where one helper waits: it holds nil if none waits, &waiting, or the loop that was
// handed to the helper.
type slot struct {
	loop atomic.Pointer[loop]
	_    [56]byte // a cache line of its own
}

var (
	slots   [16]slot
	waiting loop
)

// hand gives the loop to a helper that waits, if there is one.
func hand(l *loop) bool {
	for i := range slots {
		if s := &slots[i].loop; s.Load() == &waiting && s.CompareAndSwap(&waiting, l) {
			return true
		}
	}
	return false
}

// await returns the loop that is handed to this helper within a moment, or nil.
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

// watch waits a moment for done, and tells whether it came.
func watch(done func() bool) bool {
	const looks = 256 // some 0.3 µs
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
