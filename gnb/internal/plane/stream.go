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
	// Copying runs beside the ticks, unless inline is set: then nothing runs when a tick has returned.
	inline bool
	run    sync.WaitGroup
}

// beside calls f, which copies rows.
func (s *stream) beside(f func()) {
	if s.inline {
		f()
		return
	}
	s.run.Go(f)
}

// streamSet is the memory of each depth-th tick.
type streamSet struct {
	asked []int         // rows asked of each rank
	out   [][]byte      // the message to each rank: its head and the rows that it has asked for
	wants []int32       // of one rank
	ready chan struct{} // closed when out is complete, or err is set; nil before the first request
	err   error
}

// streamHead is the length of a message's head: its kind, the bytes of its rows, the bytes of its request, the number of
// batches that the sender has gathered, and that of the rows that it keeps for its machine. The rows follow, then the request and, to ranks of the sender's machine, the
// rows that its batch needs and they get; see joint.
const streamHead = 5 * headBytes

func (x *Exchange) stream(inline bool) *stream {
	s := &stream{x: x, inline: inline}
	for i := range s.sets {
		s.sets[i] = streamSet{asked: make([]int, x.Comm.Size()), out: make([][]byte, x.Comm.Size())}
	}
	return s
}

// end waits until nothing is copied any more.
func (s *stream) end() { s.run.Wait() }

// headWord writes number i of a message's head.
func headWord(b []byte, i int, x uint64) { binary.LittleEndian.PutUint64(b[i*headBytes:], x) }

// told is what the message of a rank of this machine says beside rows and request.
type told struct {
	gathered, kept int
	needs          []byte // ids
}

// next makes a tick that asks for the rows of ids and tells all ranks how many batches this rank has gathered and how many rows it keeps for its machine, and each of
// the ranks near the rows needs that its batch needs and that one is to get. It returns the rows that this rank has asked for depth ticks before, by the rank
// that has sent them, and what the other ranks say of themselves, all in memory of the caller.
func (s *stream) next(ids []int32, gathered, kept int, near []int, needs [][]int32) (rows [][]byte, says []told, err error) {
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
		headWord(b, 0, kindTick)
		headWord(b, 1, uint64(len(b)-streamHead))
		headWord(b, 2, uint64(4*len(x.asks[r])))
		headWord(b, 3, uint64(gathered))
		headWord(b, 4, uint64(kept))
		set.out[r] = appendIDs(b, x.asks[r])
	}
	for i, r := range near {
		if r != me {
			set.out[r] = appendIDs(set.out[r], needs[i])
		}
	}
	copy(x.send, set.out)
	want := set.asked // of depth ticks before
	set.asked = make([]int, len(want))
	for r, list := range x.asks {
		set.asked[r] = len(list)
	}
	got, err := x.all(me, failed, what)
	if err != nil {
		return nil, nil, err
	}
	requests, says := make([][]byte, len(got)), make([]told, len(got))
	for r, b := range got {
		if r == me {
			continue
		}
		kind, rest := split(b)
		size, rest := split(rest)
		asked, rest := split(rest)
		batches, rest := split(rest)
		keeps, rest := split(rest)
		if n := uint64(len(rest)); kind != kindTick || size > n || asked > n-size || (n-size)%4 != 0 || asked%4 != 0 {
			return nil, nil, fmt.Errorf("rank %d sent a message that is damaged", r)
		}
		if err := x.check(r, rest[:size], want[r]); err != nil {
			return nil, nil, err
		}
		got[r], requests[r] = rest[:size], rest[size:size+asked]
		says[r] = told{int(batches), int(keeps), rest[size+asked:]}
	}
	s.tick++
	set.ready, set.err = make(chan struct{}), nil
	s.beside(func() {
		defer close(set.ready)
		for r, list := range requests {
			set.out[r] = append(set.out[r][:0], make([]byte, streamHead)...)
			if set.err == nil && len(list) > 0 {
				set.out[r], set.wants, set.err = x.gather(r, list, set.out[r], set.wants)
			}
		}
	})
	return got, says, nil
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
	err := mapped.Guard(func() error { return x.Own.Gather(b[head:], wants) })
	if p := x.packing(); p != nil && err == nil {
		b = b[:head+len(p.pack(b[head:]))]
	}
	return b, wants, err
}

// ticker gets the rows of batch after batch by a stream. A batch has its rows after as many further ticks as depth says.
type ticker interface {
	// tick makes a tick with the next batch; nil if all are asked for, or no one will gather it. It closes ready of those
	// whose rows are there, and takes them out of Window.sent.
	tick(t *Ticket) error
	depth() int
	// end waits until no memory of the window is written to any more.
	end()
}

// alone is the ticker of a window of one rank.
type alone struct {
	w     *Window
	s     *stream
	asked []*Ticket // without an answer
}

func (a *alone) depth() int { return depth }

func (a *alone) end() { a.s.end() }

func (a *alone) tick(t *Ticket) error {
	var ids []int32
	if t != nil {
		ids = t.asked
	}
	first := a.s.tick < depth
	rows, _, err := a.s.next(ids, 0, 0, nil, nil)
	if err != nil {
		return err
	}
	a.asked = append(a.asked, t)
	if first {
		return nil
	}
	t, a.asked = a.asked[0], a.asked[1:]
	if t == nil {
		return nil
	}
	w := a.w
	w.mu.Lock()
	chunks := w.slots.chunks
	w.sent = w.sent[1:]
	w.mu.Unlock()
	a.s.beside(func() {
		a.s.x.visit(t.asked, rows, func(i int) []byte { return w.slots.row(chunks, t.slots[i]) })
		close(t.ready)
	})
	return nil
}

// answerStream gets the rows of the window's batches.
func (w *Window) answerStream() {
	defer w.ticks.end()
	for k := range w.total() {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed && w.err == nil && k < w.o.Batches {
			w.change.Wait()
		}
		if err := w.err; err != nil && !errors.Is(err, ErrClosed) && !w.silent { // of rows from elsewhere
			w.mu.Unlock()
			if errors.Is(err, ErrLeft) { // another rank has left; the others may still need rows of batches before
				_ = w.with.Leave()
			} else {
				w.joint.tell(err)
			}
			return
		}
		if w.closed {
			leave := !w.silent
			w.fail(ErrClosed)
			w.mu.Unlock()
			if leave {
				_ = w.with.Leave() // it fails only if the run is ending
			}
			return
		}
		w.mu.Unlock()
		if w.tick() != nil {
			return
		}
	}
}

// total is the number of ticks of a loop.
func (w *Window) total() int {
	if w.o.Batches == 0 {
		return 0
	}
	return w.o.Batches + w.ticks.depth()
}

// tick makes a tick with the first batch of the queue, if there is one.
func (w *Window) tick() error {
	var t *Ticket
	w.mu.Lock()
	if len(w.queue) > 0 {
		t, w.queue = w.queue[0], w.queue[1:]
		w.sent = append(w.sent, t)
	}
	w.calls++
	w.mu.Unlock()
	err := w.ticks.tick(t)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("gnb: getting rows of features: %w", err)
	w.failed(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	switch left := errors.Is(err, ErrLeft); {
	case left && w.joint != nil && w.joint.apart != nil: // the batches before come: the other rank has gathered its own
		before := w.sent[:max(0, len(w.sent)-1)]
		w.sent = w.sent[len(before):]
		w.fail(err)
		w.sent = before
		return err
	case w.closed && !left:
		err = ErrClosed
	}
	w.fail(err)
	return err
}

// tickInline makes the tick of a batch in the goroutine that asks for it and, after the last batch, those in which the
// rows of the last batches come.
func (w *Window) tickInline() error {
	for {
		if err := w.tick(); err != nil {
			return err
		}
		w.mu.Lock()
		done := w.calls < w.o.Batches || w.calls >= w.total()
		w.mu.Unlock()
		if done {
			return nil
		}
	}
}
