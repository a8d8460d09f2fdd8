package sample

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Ahead yields what next yields, produced by one goroutine while the consumer is
// at work: at most depth values are ready or being held at a time beside the one
// being made and the one in use, so memory is bounded. A depth below 1 means no
// goroutine: values are made when asked for.
//
// Order and errors are those of next. When ctx is done, the loop gets its cause
// as one last error. A panic of next, a fault in mapped memory included, is
// raised in the consumer as a [*parallel.Panic] with the producer's stack. Values
// made before it are delivered first.
//
// However the loop ends (break, return, panic, ctx), it waits until the producer
// has ended; next sees that as its loop's break after the value it is making.
// Ranging again starts next again.
func Ahead[T any](ctx context.Context, depth int, next iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if depth < 1 {
			here(ctx, next, yield)
			return
		}
		type item struct {
			value T
			err   error
		}
		var (
			items  = make(chan item, depth-1) // and one in the producer's hand
			stop   = make(chan struct{})
			done   = make(chan struct{})
			failed *parallel.Panic
		)
		go func() {
			defer close(done)
			defer close(items)
			ended := false
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				r := recover()
				if r == nil && !ended {
					r = errors.New("sample: the function that makes values ahead ended its goroutine (runtime.Goexit)")
				}
				if r == nil {
					return
				}
				if p, ok := r.(*parallel.Panic); ok {
					failed = p
					return
				}
				failed = &parallel.Panic{Value: r, Stack: debug.Stack()}
			}()
			for v, err := range next {
				if !send(items, item{v, err}, stop) {
					break
				}
			}
			ended = true
		}()
		end := sync.OnceFunc(func() {
			close(stop)
			<-done
		})
		defer end() // where the loop's body panics
		for {
			it, ok := receive(ctx, items)
			if ok && yield(it.value, it.err) {
				continue
			}
			end()
			if failed != nil {
				panic(failed)
			}
			if !ok && ctx.Err() != nil {
				var zero T
				yield(zero, context.Cause(ctx))
			}
			return
		}
	}
}

// send reports whether it went into items before stop was closed.
func send[T any](items chan<- T, it T, stop <-chan struct{}) bool {
	select {
	case <-stop: // else a free place might be taken first
		return false
	default:
	}
	select {
	case items <- it:
		return true
	case <-stop:
		return false
	}
}

// receive is the next of items; ok is false where there are no more or ctx is
// done, which comes first.
func receive[T any](ctx context.Context, items <-chan T) (it T, ok bool) {
	if ctx.Err() != nil {
		return it, false
	}
	select {
	case it, ok = <-items:
	case <-ctx.Done():
	}
	return it, ok
}

// here is Ahead without a goroutine.
func here[T any](ctx context.Context, next iter.Seq2[T, error], yield func(T, error) bool) {
	if ctx.Err() == nil {
		for v, err := range next {
			if !yield(v, err) {
				return
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
	if ctx.Err() != nil {
		var zero T
		yield(zero, context.Cause(ctx))
	}
}
