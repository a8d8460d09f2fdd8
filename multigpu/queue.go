package multigpu

import (
	"encoding/json"
	"fmt"
	"sync"
)

const (
	// maxEvents bounds the events that wait for OnEvent, over all ranks; a rank
	// beyond it waits in Emit.
	maxEvents = 4096
	// maxLines bounds the lines of one stream that wait for OnOutput.
	maxLines = 10_000
)

// queue passes the workers' events and lines to the two callbacks, which one goroutine calls.
// Events are never lost: their readers wait. Lines never make a worker wait, because a full pipe
// would block it in a print; lines that do not fit are counted and dropped.
type queue struct {
	onEvent  func(rank int, data json.RawMessage)
	onOutput func(rank int, stream, line string)

	mu     sync.Mutex
	cond   sync.Cond
	items  []item
	events int
	lines  map[source]*backlog
	closed bool
}

type source struct {
	rank   int
	stream string // "" for events
}

type item struct {
	from source
	data json.RawMessage
	line string
	// dropped marks a note about missing lines.
	dropped bool
}

// backlog counts the waiting and the dropped lines of a stream.
type backlog struct{ waiting, dropped int }

func newQueue(s Spec) *queue {
	q := &queue{onEvent: s.OnEvent, onOutput: s.OnOutput, lines: map[source]*backlog{}}
	q.cond.L = &q.mu
	return q
}

func (q *queue) event(rank int, data json.RawMessage) {
	if q.onEvent == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.events >= maxEvents {
		q.cond.Wait()
	}
	q.events++
	q.items = append(q.items, item{from: source{rank: rank}, data: data})
	q.cond.Broadcast()
}

func (q *queue) output(rank int, stream, line string) {
	if q.onOutput == nil {
		return
	}
	from := source{rank, stream}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.lines[from]
	if b == nil {
		b = &backlog{}
		q.lines[from] = b
	}
	if b.waiting >= maxLines || b.dropped > 0 {
		if b.dropped == 0 {
			q.items = append(q.items, item{from: from, dropped: true})
		}
		b.dropped++
		return
	}
	b.waiting++
	q.items = append(q.items, item{from: from, line: line})
	q.cond.Broadcast()
}

// close lets deliver return once everything has been delivered.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

// deliver calls the callbacks until close.
func (q *queue) deliver() {
	for {
		q.mu.Lock()
		for len(q.items) == 0 && !q.closed {
			q.cond.Wait()
		}
		if len(q.items) == 0 {
			q.mu.Unlock()
			return
		}
		it := q.items[0]
		q.items[0] = item{}
		q.items = q.items[1:]
		if len(q.items) == 0 {
			q.items = nil
		}
		var lost int
		switch {
		case it.from.stream == "":
			q.events--
			q.cond.Broadcast()
		case it.dropped:
			b := q.lines[it.from]
			lost, b.dropped = b.dropped, 0
		default:
			q.lines[it.from].waiting--
		}
		q.mu.Unlock()
		switch {
		case it.from.stream == "":
			q.onEvent(it.from.rank, it.data)
		case it.dropped:
			q.onOutput(it.from.rank, it.from.stream, fmt.Sprintf("… %d lines were dropped here, because they came faster than they could be shown", lost))
		default:
			q.onOutput(it.from.rank, it.from.stream, it.line)
		}
	}
}
