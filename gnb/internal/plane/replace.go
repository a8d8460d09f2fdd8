package plane

import (
	"errors"
)

// A window that replaces the rows of a pool gives a batch its slots when it knows the batches after it: those of the
// window's Known, or all. Ask announces a batch, and the batch that becomes complete by it gets its slots.

// replaces reports whether the window replaces the rows of a pool.
func (w *Window) replaces() bool { return w.o.Pool != nil && w.o.Known > 0 }

// cachedAt returns the position of a node's row in the cache or the pool that the window only reads, or -1.
func (w *Window) cachedAt(v int32) int32 {
	if w.o.Pool != nil {
		return w.o.Pool.find(v)
	}
	return w.o.Cache.find(v)
}

// cachedRow is the row at a position that cachedAt has returned.
func (w *Window) cachedRow(at int32) []byte {
	if p := w.o.Pool; p != nil {
		return p.row(p.chunks, at)
	}
	return w.o.Cache.row(at)
}

// complete is the number of batches that have all they need to get slots after n calls of Ask.
func (w *Window) complete(n int) int {
	if n >= w.o.Batches {
		return w.o.Batches
	}
	return max(0, n-w.o.Known)
}

// announce is Ask.
func (w *Window) announce(t *Ticket) error {
	for i, v := range t.ids {
		if !w.o.Own.Has(v) {
			t.away = append(t.away, int32(i))
		}
	}
	w.calling++
	due := w.complete(w.calling) - w.complete(w.calling-1)
	w.mu.Lock()
	err := w.refuses()
	if err == nil {
		w.asked++
		w.known = append(w.known, t)
		w.plan()
	}
	w.mu.Unlock()
	for w.o.Inline && due > 0 {
		if err != nil {
			if errors.Is(err, ErrClosed) {
				w.empty()
			}
			due--
			continue
		}
		var next *Ticket
		if next, err = w.awaitPlan(); err == nil {
			w.get(next)
			err = next.err
			if err != nil && !errors.Is(err, ErrClosed) {
				return err // the other ranks have failed too
			}
			due--
		}
	}
	return err
}

// awaitPlan waits until the next batch has slots, for a window that asks for its rows itself.
func (w *Window) awaitPlan() (*Ticket, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		switch {
		case w.err != nil:
			return nil, w.err
		case w.closed:
			return nil, ErrClosed
		}
		w.change.Wait()
	}
	return w.queue[0], nil
}

// plan gives slots to the batches that can have them. The caller holds the lock.
func (w *Window) plan() {
	p, room := w.o.Pool, int64(1)
	if w.o.RowBytes > 0 {
		room = w.o.Bytes / int64(w.o.RowBytes)
	}
	for w.err == nil && !w.closed && w.given < w.complete(w.asked) {
		t := w.known[0]
		for w.told < min(w.given+w.o.Known+1, w.o.Batches) {
			p.announce(w.known[w.told-w.given], w.first+int32(w.told), func(n int32) *Ticket { return w.known[int(n-w.first)-w.given] })
			w.told++
		}
		if w.flight > 0 && int64(w.flight+p.missing(t)) > room && (w.open > w.most || w.most == 0) {
			return // until a batch has been gathered
		}
		p.plan(t)
		w.known = w.known[1:]
		w.planned = append(w.planned, t)
		w.given++
		w.open++
		w.flight += len(t.asked)
		w.queueAsked(t)
		w.o.Counts.add(Rows{
			Own: int64(len(t.ids) - len(t.away)), Cached: int64(len(t.cached)), Remote: int64(len(t.asked)), Bytes: int64(len(t.asked)) * int64(w.o.RowBytes),
		})
	}
}

// queueAsked puts a batch into the queue of those whose rows are asked for, in the order of ids.
func (w *Window) queueAsked(t *Ticket) {
	slot := make(map[int32]int32, len(t.held))
	for _, p := range t.held {
		slot[t.ids[p.row]] = p.at
	}
	ascending(t.asked)
	t.slots = make([]int32, len(t.asked))
	for i, v := range t.asked {
		t.slots[i] = slot[v]
	}
	w.queue = append(w.queue, t)
	w.change.Broadcast()
}

// gathered frees what a batch has left over, the first of those planned. The caller holds the lock.
func (w *Window) gathered(t *Ticket) {
	w.planned = w.planned[1:]
	w.flight -= len(t.asked)
	w.slots.free = append(w.slots.free, t.dropped...)
	w.plan()
	w.change.Broadcast()
}
