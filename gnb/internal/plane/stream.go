package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/graphnb/graphnb/internal/mapped"
)

// depth is the number of ticks of a stream from a request to its rows. A rank gathers the rows that others have asked for
// in one tick while the next one is on the wire, so the wire waits for nothing but the way of the first bytes.
const depth = 2

// stream is a sequence of exchanges of which several are under way. At each tick a rank sends each other rank one
// message, with the request for a batch's rows and the rows that the other one has asked for depth ticks before. The
// ranks make the same ticks. As with [Exchange.Rows], a tick fails on all ranks or on none.
type stream struct {
	x    *Exchange
	tick int
	sets [depth]streamSet
	run  sync.WaitGroup
}

// streamSet is the memory of each depth-th tick.
type streamSet struct {
	asked []int         // rows asked of each rank
	out   [][]byte      // the message to each rank: its head and the rows that it has asked for
	wants []int32       // of one rank
	ready chan struct{} // closed when out is complete, or err is set; nil before the first request
	err   error
}

// streamHead is the length of a message's head: its kind and the bytes of its rows, which follow. The request is last.
const streamHead = 2 * headBytes

func (x *Exchange) stream() *stream {
	s := &stream{x: x}
	for i := range s.sets {
		s.sets[i] = streamSet{asked: make([]int, x.Comm.Size()), out: make([][]byte, x.Comm.Size())}
	}
	return s
}

// end waits until nothing is gathered any more.
func (s *stream) end() { s.run.Wait() }

// next makes a tick that asks for the rows of ids. It returns the rows that this rank has asked for depth ticks before,
// by the rank that has sent them, in memory of the caller.
func (s *stream) next(ids []int32) (rows [][]byte, err error) {
	x, me, set := s.x, s.x.Comm.Rank(), &s.sets[s.tick%depth]
	failed, what := x.requests(me, ids), askingRows
	if set.ready != nil {
		<-set.ready
		if failed == nil {
			failed, what = set.err, givingRows
		}
	}
	for r := range x.send {
		b := set.out[r]
		if set.ready == nil {
			b = make([]byte, streamHead)
		}
		binary.LittleEndian.PutUint64(b, kindTick)
		binary.LittleEndian.PutUint64(b[headBytes:], uint64(len(b)-streamHead))
		set.out[r] = appendIDs(b, x.asks[r])
		x.send[r] = set.out[r]
	}
	want := set.asked // of depth ticks before
	set.asked = make([]int, len(want))
	for r, list := range x.asks {
		set.asked[r] = len(list)
	}
	got, err := x.all(me, failed, what)
	if err != nil {
		return nil, err
	}
	requests := make([][]byte, len(got))
	for r, b := range got {
		if r == me {
			continue
		}
		kind, rest := split(b)
		size, rest := split(rest)
		if kind != kindTick || size > uint64(len(rest)) || (len(rest)-int(size))%4 != 0 {
			return nil, fmt.Errorf("rank %d sent a message that is damaged", r)
		}
		if int(size) != want[r]*x.RowBytes {
			return nil, fmt.Errorf("rank %d answered a request for %d rows of %d bytes with %d bytes; all ranks must have the same division of the dataset", r, want[r], x.RowBytes, size)
		}
		got[r], requests[r] = rest[:size], rest[size:]
	}
	s.tick++
	set.ready, set.err = make(chan struct{}), nil
	s.run.Go(func() {
		defer close(set.ready)
		for r, list := range requests {
			set.out[r] = append(set.out[r][:0], make([]byte, streamHead)...)
			if set.err == nil && len(list) > 0 {
				set.out[r], set.wants, set.err = x.gather(r, list, set.out[r], set.wants)
			}
		}
	})
	return got, nil
}

// visit calls each with the rows of the nodes ids, which next has returned.
func (x *Exchange) visit(ids []int32, rows [][]byte, each func(i int, row []byte)) {
	for i, v := range ids { // a rank's rows are in the order of ids
		r := x.Owner(v)
		each(i, rows[r][:x.RowBytes])
		rows[r] = rows[r][x.RowBytes:]
	}
}

// gather appends the rows of a request of rank r to b. It returns b and the memory of the request's ids.
func (x *Exchange) gather(r int, list, b []byte, wants []int32) ([]byte, []int32, error) {
	wants = wants[:0]
	for ; len(list) > 0; list = list[4:] {
		v := int32(binary.LittleEndian.Uint32(list))
		if v < 0 || !x.Own.Has(v) {
			return b, wants, fmt.Errorf("rank %d asked rank %d for the features of node %d, which it does not have; all ranks must have the same division of the dataset", r, x.Comm.Rank(), v)
		}
		wants = append(wants, v)
	}
	head, size := len(b), len(b)+len(wants)*x.RowBytes
	if cap(b) < size {
		b = append(make([]byte, 0, size+size/8), b...)
	}
	b = b[:size]
	// The rows may be in a mapped file, and this goroutine is not the program's: a fault here would end the worker.
	return b, wants, mapped.Guard(func() error { return x.Own.Gather(b[head:], wants) })
}

// answerStream gets the rows of the window's batches by a stream.
func (w *Window) answerStream(x *Exchange) {
	s := x.stream()
	defer s.end()
	var copying sync.WaitGroup
	defer copying.Wait()
	var flight []*Ticket // asked for, without an answer
	total := 0
	if w.o.Batches > 0 {
		total = w.o.Batches + depth
	}
	for k := range total {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed && k < w.o.Batches {
			w.change.Wait()
		}
		if w.closed {
			leave := !w.silent
			w.queue = append(flight, w.queue...)
			w.fail(ErrClosed)
			w.mu.Unlock()
			if leave {
				_ = x.Leave() // it fails only if the run is ending
			}
			return
		}
		var ids []int32
		if k < w.o.Batches {
			t := w.queue[0]
			w.queue = w.queue[1:]
			w.calls++
			flight, ids = append(flight, t), t.asked
		}
		chunks := w.slots.chunks
		w.mu.Unlock()
		rows, err := s.next(ids)
		if err != nil {
			err = fmt.Errorf("gnb: getting rows of features: %w", err)
			w.failed(err)
			w.mu.Lock()
			if w.closed && !errors.Is(err, ErrLeft) {
				err = ErrClosed
			}
			w.queue = append(flight, w.queue...)
			w.fail(err)
			w.mu.Unlock()
			return
		}
		if k < depth {
			continue
		}
		t := flight[0]
		flight = flight[1:]
		copying.Go(func() {
			x.visit(t.asked, rows, func(i int, row []byte) { copy(w.slots.row(chunks, t.slots[i]), row) })
			close(t.ready)
		})
	}
}
