// Package parallel runs loops on several goroutines; their number does not affect the result.
//
// Chunks depend on the length of the loop and its grain alone, never on the number of threads, so a
// reduction that keeps one partial result per chunk and combines them in a fixed order has the same
// bits on any number of threads.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Threads resolves a thread count: n if it is positive, else GOMAXPROCS.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Chunks returns the number of chunks into which [For] splits a loop of n.
func Chunks(n, grain int) int {
	if n <= 0 {
		return 0
	}
	return (n + grain - 1) / grain
}

// For calls body(lo, hi) once for each chunk [lo, hi) of [0, n): every chunk but
// the last is grain long. At most threads goroutines run at a time (0 means
// GOMAXPROCS); the caller is one of them, and a loop of one chunk runs on the
// caller alone.
//
// The caller waits only for goroutines that have begun a chunk: if the others are slow to wake, it
// does the work itself, so a short loop costs no more than on one thread. For allocates nothing in
// steady state.
//
// A panic in body ends the loop and is raised again in the caller: as a [*Panic] with the original
// value if several goroutines ran, unchanged if the caller ran alone. SetPanicOnFault is set in
// each goroutine that For starts, so a fault in mapped memory arrives the same way (see package
// mapped).
func For(threads, n, grain int, body func(lo, hi int)) {
	chunks := Chunks(n, grain)
	if chunks == 0 {
		return
	}
	workers := min(Threads(threads), chunks)
	if workers <= 1 {
		for lo := 0; lo < n; lo += grain {
			body(lo, min(lo+grain, n))
		}
		return
	}
	l := getLoop()
	l.body, l.n, l.grain = body, n, grain
	l.taken.Store(0)
	l.state.Store(0)
	l.refs.Store(int32(workers))
	for range workers - 1 {
		if hand(l) {
			continue
		}
		if late.Load() >= maxLate {
			l.refs.Add(-1)
			continue
		}
		late.Add(1)
		go l.start()
	}
	l.run(false)
	if l.state.Load() != 0 {
		watch(func() bool { return l.state.Load() == 0 })
	}
	if l.state.Add(closed) != closed {
		<-l.done
	}
	failed := l.failed.Swap(nil)
	l.release()
	if failed != nil {
		panic(*failed)
	}
}

// Sum returns the sum of part(lo, hi) over the chunks of [For], added in their order: it does not depend on threads.
func Sum(threads, n, grain int, part func(lo, hi int) float64) (sum float64) {
	parts := make([]float64, Chunks(n, grain))
	For(threads, n, grain, func(lo, hi int) { parts[lo/grain] = part(lo, hi) })
	for _, p := range parts {
		sum += p
	}
	return sum
}

// ForFine is For with chunks of about 20 µs each. A loop of fewer than three chunks runs on the
// caller alone: it finishes before another thread could take its part and hand back the result. An
// epoch of Cora takes 0.89 ms if loops of six or more chunks are shared and 0.82 ms if loops of
// three or more are, on two processors whose helpers are awake.
func ForFine(threads, n, grain int, body func(lo, hi int)) {
	if Chunks(n, grain) < int(shareFrom.Load()) {
		threads = 1
	}
	For(threads, n, grain, body)
}

// ForEven is ForFine for a body whose result does not depend on the chunks. If a loop is shared, its chunks are a quarter as long as
// grain: of three chunks two threads would take two and one.
func ForEven(threads, n, grain int, body func(lo, hi int)) {
	if Chunks(n, grain) < int(shareFrom.Load()) {
		threads = 1
	} else {
		grain = max(1, grain/4)
	}
	For(threads, n, grain, body)
}

// shareFrom is the number of chunks from which ForFine shares a loop.
var shareFrom atomic.Int32

func init() { shareFrom.Store(3) }

// ShareFrom makes ForFine share loops of at least the given number of chunks, and returns the
// previous number. It is for tests of small loops.
func ShareFrom(chunks int) (before int) { return int(shareFrom.Swap(int32(chunks))) }

// loop is a loop that several goroutines share.
type loop struct {
	body     func(lo, hi int)
	n, grain int
	// taken has the number of chunks that the caller has taken, from the first on, in its low half, and the number that helpers have
	// taken, from the last on, in its high half. So of two threads each gets about the same rows in one loop after the other, and finds
	// them in its processor's cache.
	taken atomic.Uint64
	// state counts the working helpers; the closed flag keeps further ones from starting. The last
	// helper to leave a closed loop sends to done.
	state  atomic.Int32
	done   chan struct{}
	refs   atomic.Int32 // goroutines that hold a reference to the loop, including late ones
	failed atomic.Pointer[any]
	start  func() // the method value help, bound once, because a go statement with a receiver allocates
}

const closed = 1 << 30

// late counts helpers that wait to be scheduled. If there are maxLate of them, the processors are
// busy, and another helper would only wait too.
var late atomic.Int32

const maxLate = 32

var loops sync.Pool

func getLoop() *loop {
	if l, ok := loops.Get().(*loop); ok {
		return l
	}
	l := &loop{done: make(chan struct{}, 1)}
	l.start = l.help
	return l
}

// help is a helper's goroutine: it helps with l, then with the loops that it is handed.
func (l *loop) help() {
	late.Add(-1)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for l != nil && l.assist() {
		l = await()
	}
}

// assist works on the loop, and reports whether the loop was still open.
func (l *loop) assist() bool {
	defer l.release()
	for {
		s := l.state.Load()
		if s >= closed {
			return false
		}
		if l.state.CompareAndSwap(s, s+1) {
			break
		}
	}
	l.run(true)
	if l.state.Add(-1) == closed {
		l.done <- struct{}{}
	}
	return true
}

// run works on chunks until none are left or one has panicked.
func (l *loop) run(helps bool) {
	const back = 1 << 32
	defer l.catch()
	chunks := uint64(Chunks(l.n, l.grain))
	for l.failed.Load() == nil {
		one := uint64(1)
		if helps {
			one = back
		}
		taken := l.taken.Add(one)
		first, last := taken%back, taken/back
		if first+last > chunks {
			return
		}
		at := first - 1
		if helps {
			at = chunks - last
		}
		lo := int(at) * l.grain
		l.body(lo, min(lo+l.grain, l.n))
	}
}

func (l *loop) catch() {
	if r := recover(); r != nil {
		kept := keepStack(r)
		l.failed.CompareAndSwap(nil, &kept)
	}
}

// release drops a reference to the loop; the last goroutine to do so makes it reusable.
func (l *loop) release() {
	if l.refs.Add(-1) == 0 {
		l.body = nil
		loops.Put(l)
	}
}

// Panic is a panic carried from the goroutine in which it happened to the one that waited for it.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Unwrap returns the original error for errors.As.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

func keepStack(r any) any {
	if p, ok := r.(*Panic); ok {
		return p
	}
	return &Panic{Value: r, Stack: debug.Stack()}
}
