package store

import (
	"errors"
	"sync"

	"github.com/graphnb/graphnb/internal/cuda"
)

// ErrStopped is the error of [Stager.Prepare] and [Feeder.Prepare] if they were stopped while they waited.
var ErrStopped = errors.New("store: stopped")

// staging is memory on a device for the rows of one batch, with the ids of the rows that it reads and a table of their
// places.
type staging struct {
	d                *cuda.Device
	rows, ids, slots *cuda.Buffer
	ready, end       *cuda.Event // of copying the batch, and of its use
}

// init makes the events.
func (m *staging) init(d *cuda.Device) (err error) {
	m.d = d
	if m.ready, err = d.Event(false); err == nil {
		m.end, err = d.Event(false)
	}
	return err
}

// room makes the buffers at least as large as these numbers of bytes, for work that the copy stream does from now on. Those that are
// large enough keep their content.
func (m *staging) room(rows, ids, slots int64) error {
	m.d.Copy.Wait(m.end) // work submitted earlier may still read what the memory held before
	for _, b := range []struct {
		b     **cuda.Buffer
		bytes int64
	}{{&m.rows, rows}, {&m.ids, ids}, {&m.slots, slots}} {
		if err := enlarge(m.d, b.b, b.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (m *staging) close() {
	for _, b := range []*cuda.Buffer{m.rows, m.ids, m.slots} {
		b.Free()
	}
}

// enlarge makes b a buffer of at least n bytes for the copy and the compute stream. It keeps one that is large enough, with
// its content.
func enlarge(d *cuda.Device, b **cuda.Buffer, n int64) error {
	if *b != nil && (*b).Bytes >= n {
		return nil
	}
	if *b != nil {
		n += n / 8 // batches vary
	}
	(*b).Free()
	*b = nil
	buf, err := d.Copy.Alloc(cuda.Staging, n)
	if err != nil {
		return err
	}
	buf.UsedOn(d.Compute)
	*b = buf
	return nil
}

// pair is the memory for two batches of a loop.
type pair[R any] struct {
	sets [2]*R
	free chan *R
}

func newPair[R any](set func() (*R, error)) (p pair[R], err error) {
	p.free = make(chan *R, len(p.sets))
	for i := range p.sets {
		if p.sets[i], err = set(); err != nil {
			return p, err
		}
		p.free <- p.sets[i]
	}
	return p, nil
}

// close frees the memory, if the pair has any.
func (p *pair[R]) close(free func(*R)) {
	for _, r := range p.sets {
		if r != nil {
			free(r)
		}
	}
}

// take waits for memory that no batch uses, until stop is closed.
func (p *pair[R]) take(stop <-chan struct{}) (*R, error) {
	select {
	case r := <-p.free:
		return r, nil
	case <-stop:
		return nil, ErrStopped
	}
}

// loops keeps what loops over batches use for later ones.
type loops[S any] struct {
	mu        sync.Mutex
	all, idle []*S
}

// begin returns what an ended loop has used, or something new.
func (l *loops[S]) begin(add func() (*S, error)) (*S, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		s := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return s, nil
	}
	s, err := add()
	if err == nil {
		l.all = append(l.all, s)
	}
	return s, err
}

func (l *loops[S]) end(s *S) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, s)
}

// close frees what the loops have used. None of them may be in progress.
func (l *loops[S]) close(free func(*S)) {
	for _, s := range l.all {
		free(s)
	}
	l.all, l.idle = nil, nil
}
