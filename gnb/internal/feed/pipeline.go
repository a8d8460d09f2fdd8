// Package feed prepares a rank's batches: a [Pipeline] makes them ahead of the training loop,
// [Samplers] keeps samplers with their tables from one loop to the next, and [Spares] reuses the
// memory of finished batches.
package feed

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pipeline makes items in two stages, each in its own goroutine, ahead of a consumer that takes
// them in order.
type Pipeline[T any] struct {
	// Items is the number of items, and Ahead the number made ahead of the consumer.
	Items, Ahead int
	// Fetched bounds the items that have been fetched and are not finished, with the consumer's; 0 means no other bound
	// than Ahead.
	Fetched int
	// Sample is the first stage of item i. If ok is false it is the last item, which the consumer
	// gets without the second stage.
	Sample func(i int) (item T, ok bool)
	// Fetch is the second stage. It returns early when stop is closed.
	Fetch func(item T, stop <-chan struct{})
	// Release is called for items that the consumer did not take.
	Release func(item T)
	// Together is set if Sample waits for other ranks. Then Close does not wait for the first stage.
	Together *Together
	// Stopped, unless nil, is called at the beginning of Close, before waiting for the stages. failed says that the
	// consumer has panicked.
	Stopped func(failed bool)
}

// Together is the end of pipelines whose first stage waits for other ranks. Its ranks leave a loop
// at their own times, and those that are still in it need what the others sample; a rank must not
// wait for them before they can see that it has left.
type Together struct {
	// Leave tells the other ranks that this one samples no more items of a loop that has more, and
	// waits for them to leave too.
	Leave func()
	// First counts the first stages that have not ended.
	First *sync.WaitGroup
	// Waits is set if the first stage and the consumer share one processor. It reports whether the first stage
	// waits for other ranks. Next then lets the first stage work first: its ranks meet sooner, and a rank that
	// waits for others in the consumer's work still has batches to sample meanwhile.
	Waits func() bool
}

// Running is a running pipeline. One goroutine calls its methods.
type Running[T any] struct {
	p       Pipeline[T]
	stop    chan struct{}
	sampled chan *slot[T]
	last    *slot[T] // that Next returned
	first   *sync.WaitGroup
	second  sync.WaitGroup
	room    chan struct{} // has an entry for each item that is fetched and not finished; nil without a bound
	failed  atomic.Bool   // the consumer has panicked
	working atomic.Bool   // the first stage makes items, and does not wait for the second
	using   bool
}

type slot[T any] struct {
	item    T
	more    bool          // the second stage gets it
	fetched chan struct{} // closed after the second stage
}

// Start starts both stages.
func (p Pipeline[T]) Start() *Running[T] {
	r := &Running[T]{p: p, stop: make(chan struct{}), sampled: make(chan *slot[T], p.Ahead)}
	fetch := make(chan *slot[T], p.Ahead)
	if p.Fetched > 0 {
		r.room = make(chan struct{}, p.Fetched)
	}
	r.first = &sync.WaitGroup{}
	if p.Together != nil {
		r.first = p.Together.First
	}
	r.working.Store(true)
	r.first.Go(func() {
		next := r.sample(fetch)
		r.working.Store(false)
		close(r.sampled)
		close(fetch)
		if p.Together != nil {
			r.end(next)
		}
	})
	r.second.Go(func() {
		for {
			select {
			case s, ok := <-fetch:
				if !ok {
					return
				}
				if r.room != nil {
					select {
					case r.room <- struct{}{}:
					case <-r.stop:
						return
					}
				}
				p.Fetch(s.item, r.stop)
				close(s.fetched)
			case <-r.stop:
				return
			}
		}
	})
	return r
}

// sample is the first stage. It returns the number of the item after the last one.
func (r *Running[T]) sample(fetch chan<- *slot[T]) (next int) {
	for i := range r.p.Items {
		item, more := r.p.Sample(i)
		if !more {
			next = r.p.Items
		} else {
			next = i + 1
		}
		s := &slot[T]{item, more, make(chan struct{})}
		select {
		case r.sampled <- s:
		case <-r.stop:
			r.p.Release(item)
			return next
		}
		if !more {
			return next
		}
		select {
		case fetch <- s:
			continue
		default:
		}
		r.working.Store(false)
		select {
		case fetch <- s:
		case <-r.stop:
			return next
		}
		r.working.Store(true)
	}
	return next
}

// end ends a first stage that samples together with other ranks, before item next.
func (r *Running[T]) end(next int) {
	select {
	case <-r.stop:
	default: // the consumer takes the items, or Close will
		return
	}
	r.second.Wait() // it may still fetch what drain releases
	r.drain()
	if next < r.p.Items && !r.failed.Load() {
		r.p.Together.Leave()
	}
}

// drain releases the items that are ready.
func (r *Running[T]) drain() {
	for {
		select {
		case s, ok := <-r.sampled:
			if !ok {
				return
			}
			r.p.Release(s.item)
		default:
			return
		}
	}
}

// Next waits for the first stage of the next item; ok is false after the last one. The item is the
// consumer's.
func (r *Running[T]) Next() (item T, ok bool) {
	if r.last != nil && r.last.more && r.room != nil {
		<-r.room // the item before is finished
	}
	if r.last, ok = <-r.sampled; !ok {
		return item, false
	}
	if t := r.p.Together; t != nil && t.Waits != nil {
		for r.working.Load() && len(r.sampled) < cap(r.sampled) && !t.Waits() {
			runtime.Gosched()
		}
	}
	return r.last.item, true
}

// Wait waits for the second stage of the item that Next returned last.
func (r *Running[T]) Wait() { <-r.last.fetched }

// Use runs the consumer's work on an item, and notes if it panics.
func (r *Running[T]) Use(work func() bool) bool {
	r.using = true
	ok := work()
	r.using = false
	return ok
}

// Close ends both stages and releases the items that the consumer did not take. A first stage that
// waits for other ranks ends later.
func (r *Running[T]) Close() {
	r.failed.Store(r.using)
	close(r.stop)
	if r.p.Stopped != nil {
		r.p.Stopped(r.using)
	}
	r.second.Wait()
	if r.p.Together == nil {
		r.first.Wait()
	}
	r.drain()
}
