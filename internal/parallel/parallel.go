// Package parallel runs loops on several goroutines without letting their
// number show in the result.
//
// Chunks depend on the length of the loop and its grain alone, never on the
// number of threads, so a reduction that keeps one partial result a chunk and
// combines them in a fixed order has the same bits on any number of threads.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Threads resolves a thread count: n where it is positive, else GOMAXPROCS.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Chunks is the number of chunks that [For] cuts a loop of n into.
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
// A panic in body ends the loop and is raised again in the caller: as a [*Panic]
// with the original value where several goroutines ran, as it was where the
// caller ran alone. SetPanicOnFault is set in each goroutine that For starts, so
// a fault in mapped memory arrives the same way (see package mapped).
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
	var (
		next   atomic.Int64
		failed atomic.Pointer[any]
		wg     sync.WaitGroup
	)
	run := func() {
		defer func() {
			if r := recover(); r != nil {
				r = keepStack(r)
				failed.CompareAndSwap(nil, &r)
			}
		}()
		for failed.Load() == nil {
			lo := int(next.Add(1)-1) * grain
			if lo >= n {
				return
			}
			body(lo, min(lo+grain, n))
		}
	}
	for range workers - 1 {
		wg.Go(func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			run()
		})
	}
	run()
	wg.Wait()
	if r := failed.Load(); r != nil {
		panic(*r)
	}
}

// Panic is a panic that was carried from the goroutine it happened in to the
// one that waited for it.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Unwrap gives errors.As the original error.
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
