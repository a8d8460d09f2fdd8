// Package feed prepares a rank's batches: a [Pipeline] makes them ahead of the training loop,
// [Samplers] keeps samplers with their tables from one loop to the next, and [Spares] reuses the
// memory of finished batches.
package feed

import "sync"

// Pipeline makes items in two stages, each in its own goroutine, ahead of a consumer that takes
// them in order.
type Pipeline[T any] struct {
	// Items is the number of items, and Ahead the number made ahead of the consumer.
	Items, Ahead int
	// Sample is the first stage of item i. If ok is false it is the last item, which the consumer
	// gets without the second stage.
	Sample func(i int) (item T, ok bool)
	// Fetch is the second stage. It returns early when stop is closed.
	Fetch func(item T, stop <-chan struct{})
	// Release is called for items that the consumer did not take.
	Release func(item T)
}

// Running is a running pipeline. One goroutine calls its methods.
type Running[T any] struct {
	p       Pipeline[T]
	stop    chan struct{}
	sampled chan *slot[T]
	last    *slot[T] // that Next returned
	wg      sync.WaitGroup
}

type slot[T any] struct {
	item    T
	fetched chan struct{} // closed after the second stage
}

// Start starts both stages.
func (p Pipeline[T]) Start() *Running[T] {
	r := &Running[T]{p: p, stop: make(chan struct{}), sampled: make(chan *slot[T], p.Ahead)}
	fetch := make(chan *slot[T], p.Ahead)
	r.wg.Go(func() {
		defer close(r.sampled)
		defer close(fetch)
		for i := range p.Items {
			item, more := p.Sample(i)
			s := &slot[T]{item, make(chan struct{})}
			select {
			case r.sampled <- s:
			case <-r.stop:
				p.Release(item)
				return
			}
			if !more {
				return
			}
			select {
			case fetch <- s:
			case <-r.stop:
				return
			}
		}
	})
	r.wg.Go(func() {
		for s := range fetch {
			p.Fetch(s.item, r.stop)
			close(s.fetched)
		}
	})
	return r
}

// Next waits for the first stage of the next item; ok is false after the last one. The item is the
// consumer's.
func (r *Running[T]) Next() (item T, ok bool) {
	if r.last, ok = <-r.sampled; !ok {
		return item, false
	}
	return r.last.item, true
}

// Wait waits for the second stage of the item that Next returned last.
func (r *Running[T]) Wait() { <-r.last.fetched }

// Close ends both stages and releases the items that the consumer did not take.
func (r *Running[T]) Close() {
	close(r.stop)
	r.wg.Wait()
	for s := range r.sampled {
		r.p.Release(s.item)
	}
}
