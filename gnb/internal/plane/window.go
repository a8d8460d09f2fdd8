package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Options of a [Window]. Cache, Pool, Counts and Inline may be left out.
type Options struct {
	Source Source
	Own    Own
	Cache  *Cache
	// Pool takes the place of Cache. If Known is not 0 the window replaces its rows, knowing that number of batches beyond
	// the one whose rows it asks for, or all that are left: so it gets the rows of a batch only once Ask was called for
	// these. Such a window is open alone.
	Pool     *Pool
	Known    int
	Counts   *Counts
	RowBytes int
	// Nodes is the number of nodes, which all ids are below. With 0 a window that knows no number from Machine finds rows
	// more slowly.
	Nodes int
	// Bytes bounds the rows that are kept for batches which are not gathered yet. A batch that needs more alone is
	// admitted when no other is there and, with an [Exchange], when [Depth] others are: the rows of a batch come after the
	// requests of the next ones, so an Ask of these must not wait for it.
	Bytes int64
	// Kept, unless nil, has rows of earlier loops, and keeps those of this one where Bytes leave room; Pool is nil then, and
	// the source is no [Collective]. Nodes, RowBytes and Bytes are then those of the earlier windows. A window that opens while another one has it keeps none.
	Kept *Kept
	// Batches is the number of batches of the loop, the same on all ranks of a [Collective] source.
	Batches int
	// Inline makes Ask get the rows itself, instead of a goroutine: for a source that shares its connection with the
	// goroutine that calls Ask. With a Machine and a source that is no [Exchange], Ask tells the ranks of the machine what the
	// batch needs, and the rows come beside it. With a [Collective] source or a Machine the ranks then leave a loop by a
	// message of that goroutine's.
	Inline bool
	// Machine, unless nil, makes this window and those of other ranks one; see there. Pool is nil then.
	Machine *Machine
	// Failed, unless nil, is called with the error of a call that the other ranks may have awaited, of a [Collective] source
	// or with a Machine. No batch may report it: the program may leave the loop before the batch that made the call.
	Failed  func(error)
	Threads int // that copy rows; 0 means GOMAXPROCS
}

// ErrClosed is the error of a [Window] that has been closed.
var ErrClosed = errors.New("gnb: the loop over batches has ended")

// Window has the rows that the next batches of a loop read from elsewhere. One goroutine calls Ask for each batch in
// order; another calls [Ticket.Gather] for each, in order too. A row is asked for once while batches that need it are in
// the window, and dropped when all of them have been gathered.
type Window struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	run    sync.WaitGroup

	mu     sync.Mutex
	change sync.Cond
	queue  []*Ticket // not sent to the source
	sent   []*Ticket // sent by a ticker, without rows
	asked  int       // batches
	calls  int       // of the source
	open   int       // batches that are not gathered
	most   int       // that many open batches are always admitted; see stream
	closed bool
	silent bool // closed without a word to the other ranks
	broken bool // a tick has failed, on all ranks or, after a message that makes no sense, on this one
	err    error
	ticks  ticker     // nil unless a stream of an Exchange gets the rows, or tells what ranks need
	with   Collective // the source, or what the ranks of a machine tell each other by; nil if there are no other ranks

	slots  *slots
	rows   *rows  // of slots; of a joint window, those of its share
	slot   *table // of each row that is here or on its way; not used by a window that replaces rows, or of a machine
	buffer []byte // of an answer
	joint  *joint // of a window that the ranks of a machine have together, else nil

	// Of a window that replaces the rows of a pool:
	calling int       // calls of Ask
	first   int32     // number of the loop's first batch
	known   []*Ticket // batches that Ask has announced and that have no slots yet
	planned []*Ticket // batches that have slots and are not gathered
	told    int       // batches that the pool knows of
	given   int       // batches that have slots
	flight  int       // rows that planned batches have asked for
}

// Ticket stands for the rows of one batch.
type Ticket struct {
	w      *Window
	ids    []int32
	cached []place // rows in the cache
	held   []place // rows in the window
	asked  []int32 // ids that this batch asks for, ascending
	slots  []int32 // of asked
	ready  chan struct{}
	err    error // valid once ready is closed

	// Of a window that replaces rows:
	away    []int32 // where in ids the rows are that are not on this machine
	after   []int32 // for each of them, the next known batch that reads it
	dropped []int32 // slots that are free once this batch has been gathered
}

// place says where a row of a batch is.
type place struct{ row, at int32 }

// Open opens the window of one loop. Close it. The context ends requests of a source that is not a [Collective].
func Open(ctx context.Context, o Options) *Window {
	w := &Window{o: o, slots: &slots{rowBytes: o.RowBytes}, rows: &rows{}}
	keeps := o.Kept != nil && o.Kept.begin(w)
	switch {
	case keeps:
		w.rows = &o.Kept.rows
	case o.Kept != nil && o.Machine != nil:
		panic("plane: two windows are open over the memory of a machine")
	}
	switch {
	case w.replaces() || o.Machine != nil:
	case !keeps:
		w.slot = newTable(o.Nodes)
	default:
		if o.Kept.slots == nil {
			o.Kept.slots, o.Kept.table = w.slots, newTable(o.Nodes)
			if o.Kept.all {
				w.slots.split(make([]byte, o.Nodes*o.RowBytes)) // what is not written to takes no memory
			}
		}
		w.slots, w.slot = o.Kept.slots, o.Kept.table
	}
	if w.replaces() {
		if !o.Pool.Settle() {
			panic("plane: two windows replace the rows of one pool")
		}
		o.Pool.window, w.slots, w.first = w, &o.Pool.slots, o.Pool.batch
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.change.L = &w.mu
	w.with, _ = o.Source.(Collective)
	x, ok := o.Source.(*Exchange)
	switch {
	case o.Machine != nil:
		j := newJoint(w, x)
		w.ticks, w.joint, w.with, ok = j, j, j.s.x, true
	case ok && !(o.Inline && w.replaces()):
		w.ticks = &alone{w: w, s: x.stream(o.Inline)}
	}
	if w.ticks != nil {
		w.most = w.ticks.depth()
	}
	switch {
	case o.Inline:
	case ok:
		w.run.Go(w.answerStream)
	default:
		w.run.Go(w.answer)
	}
	return w
}

// Depth is the number of batches after one that must be asked for, at most, before its rows come from an [Exchange];
// machine says that ranks of a machine have one window. From another source they come without a further batch.
func Depth(machine bool) int {
	if machine {
		return jointDepth
	}
	return depth
}

// Ask announces the next batch, which reads the rows of the distinct nodes ids, and returns at once unless the window is
// full. The ids must stay unchanged until the batch is gathered.
func (w *Window) Ask(ids []int32) (*Ticket, error) {
	t := &Ticket{w: w, ids: ids, ready: make(chan struct{})}
	if w.replaces() {
		if err := w.announce(t); err != nil {
			return nil, err
		}
		return t, nil
	}
	var counts Rows
	for i, v := range ids {
		if w.o.Own.Has(v) {
			counts.Own++
		} else if at := w.cachedAt(v); at >= 0 {
			t.cached = append(t.cached, place{int32(i), at})
		} else {
			t.held = append(t.held, place{row: int32(i)})
		}
	}
	admit := w.admit
	if w.joint != nil {
		admit = w.joint.admit
	}
	if err := admit(t); err != nil {
		if w.o.Inline {
			w.refused(err)
		}
		return nil, err
	}
	counts.Cached = int64(len(t.cached))
	if w.joint == nil { // else the ranks that get them count them
		counts.add(w.asks(t))
	}
	w.o.Counts.add(counts)
	switch {
	case w.o.Inline && w.ticks != nil:
		if err := w.tickInline(); err != nil {
			return nil, err
		}
	case w.o.Inline:
		w.get(t)
		if t.err != nil {
			return nil, t.err
		}
	}
	return t, nil
}

// asks returns the counts of the rows of a batch that are neither here nor cached.
func (w *Window) asks(t *Ticket) Rows {
	asked := int64(len(t.asked))
	return Rows{Remote: asked, Window: int64(len(t.held)) - asked, Bytes: asked * int64(w.o.RowBytes)}
}

// admit waits until the rows of a batch have room, and gives them slots.
func (w *Window) admit(t *Ticket) error {
	room := w.room(len(t.held))
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.refuses(); err != nil {
			return err
		}
		missing := 0 // rows that no batch needs yet
		for _, p := range t.held {
			if at, ok := w.slot.get(t.ids[p.row]); !ok || w.rows.slots[at].uses == 0 {
				missing++
			}
		}
		if w.rows.needed == 0 || w.rows.needed+missing <= room || w.open <= w.most && w.most > 0 {
			t.asked = make([]int32, 0, missing)
			break
		}
		w.change.Wait()
	}
	for i := range t.held { // before others take the slots of kept rows
		p := &t.held[i]
		at, ok := w.slot.get(t.ids[p.row])
		if p.at = -1; ok {
			p.at = at
			w.rows.need(at)
		}
	}
	for i := range t.held {
		p := &t.held[i]
		if p.at >= 0 {
			continue
		}
		v := t.ids[p.row]
		at := v
		if w.all() {
			w.rows.place(v, at)
		} else {
			var replaced int32
			if at, replaced = w.rows.take(v, room); replaced >= 0 {
				w.slot.drop(replaced)
			}
			w.slots.reach(at)
		}
		w.slot.put(v, at)
		w.rows.need(at)
		p.at = at
		t.asked = append(t.asked, v)
	}
	ascending(t.asked)
	t.slots = make([]int32, len(t.asked))
	for i, v := range t.asked {
		t.slots[i], _ = w.slot.get(v)
	}
	w.queue = append(w.queue, t)
	w.asked++
	w.open++
	w.change.Broadcast()
	return nil
}

// refuses returns why a batch cannot be asked for, or nil. The caller holds the lock.
func (w *Window) refuses() error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	case w.asked == w.o.Batches:
		return fmt.Errorf("gnb: a loop of %d batches asks for the features of another one", w.o.Batches)
	}
	return nil
}

// refused takes part in the call of the other ranks for a batch that Ask has refused with an error, inline. They sampled the
// batch together, so the others make the call. The error may be one of getting rows beside the calls, of which the others
// are told then.
func (w *Window) refused(err error) {
	apart := w.joint != nil && w.joint.apart != nil
	w.mu.Lock()
	gone := errors.Is(err, ErrClosed) || apart && errors.Is(err, ErrLeft)
	call, tell := gone && !w.broken, apart && !gone && w.err != nil && !w.broken
	w.broken = w.broken || tell
	w.mu.Unlock()
	switch {
	case call:
		w.empty()
	case tell:
		w.joint.tell(err)
	}
}

// empty takes part in a call of the other ranks for a batch that this rank will not gather. They sampled the batch
// together, so the others make the call before they can see that this rank has left.
func (w *Window) empty() {
	if w.ticks != nil {
		_ = w.tickInline() // it reports its error
		return
	}
	if w.with != nil {
		if err := w.with.Rows(w.ctx, nil, nil); err != nil {
			w.failed(fmt.Errorf("gnb: taking part in getting rows of features: %w", err))
		}
	}
}

// failed reports the error of a call.
func (w *Window) failed(err error) {
	if w.with != nil && w.o.Failed != nil && !errors.Is(err, ErrLeft) {
		w.o.Failed(err)
	}
}

// answer gets the rows of batch after batch, until the window is closed.
func (w *Window) answer() {
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed && w.calls < w.o.Batches {
			w.change.Wait()
		}
		if w.closed || len(w.queue) == 0 {
			leave := w.with != nil && w.calls < w.o.Batches && !w.silent
			w.fail(ErrClosed)
			w.mu.Unlock()
			if leave {
				_ = w.with.Leave() // it fails only if the run is ending
			}
			return
		}
		t := w.queue[0]
		w.mu.Unlock()
		w.get(t)
		if t.err != nil {
			return
		}
	}
}

// get gets the rows that a batch, the first of the queue, has asked for.
func (w *Window) get(t *Ticket) {
	w.mu.Lock()
	w.queue = w.queue[1:]
	w.calls++
	chunks := w.slots.chunks
	w.mu.Unlock()
	err := w.copyTo(chunks, t.asked, t.slots)
	w.mu.Lock()
	if err == nil && w.rows.keeps {
		for _, at := range t.slots {
			w.rows.came(at)
		}
	}
	w.mu.Unlock()
	if err != nil {
		t.err = fmt.Errorf("gnb: getting %d rows of features: %w", len(t.asked), err)
		w.failed(t.err)
		w.mu.Lock()
		if w.closed && !errors.Is(t.err, ErrLeft) {
			t.err = ErrClosed
		}
		w.fail(t.err)
		w.mu.Unlock()
	}
	close(t.ready)
}

// hasRoomForAll reports whether the windows have room for the rows of all nodes.
func (w *Window) hasRoomForAll() bool {
	ranks := 1
	if w.o.Machine != nil {
		ranks = len(w.o.Machine.Ranks)
	}
	return w.o.Nodes > 0 && w.o.RowBytes > 0 && w.room(0) >= (w.o.Nodes+ranks-1)/ranks
}

// all reports whether the slots of the window are the numbers of nodes.
func (w *Window) all() bool { return w.rows.keeps && w.o.Kept.all }

// room is the number of rows that Options.Bytes have room for, n if it is not known.
func (w *Window) room(n int) int {
	if w.o.RowBytes == 0 {
		return n
	}
	return int(w.o.Bytes / int64(w.o.RowBytes))
}

// copyTo gets the rows of the nodes ids into slots.
func (w *Window) copyTo(chunks [][]byte, ids, slots []int32) error {
	size := len(ids) * w.o.RowBytes
	if _, together := w.o.Source.(Collective); !together && size == 0 {
		return nil
	}
	if s, ok := w.o.Source.(Scatterer); ok {
		return s.Scatter(w.ctx, ids, func(i int) []byte { return w.slots.row(chunks, slots[i]) })
	}
	if cap(w.buffer) < size {
		w.buffer = make([]byte, size+size/8)
	}
	buffer := w.buffer[:size]
	if err := w.o.Source.Rows(w.ctx, ids, buffer); err != nil {
		return err
	}
	w.each(len(slots), func(i int) { copy(w.slots.row(chunks, slots[i]), buffer[i*w.o.RowBytes:]) })
	return nil
}

// fail ends the requests of the queue, and later ones. The caller holds the lock.
func (w *Window) fail(err error) {
	w.err = err
	for _, t := range slices.Concat(w.sent, w.queue, w.known) {
		t.err = err
		close(t.ready)
	}
	w.sent, w.queue, w.known = nil, nil, nil
	w.change.Broadcast()
}

// each calls f for 0 to n-1, in parallel.
func (w *Window) each(n int, f func(i int)) {
	parallel.For(w.o.Threads, n, max(16, (1<<16)/max(w.o.RowBytes, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}

// Gather waits for the rows of the batch, writes them to dst [len(ids) rows] in the order of the ids, and drops those that no
// later batch needs and that are not kept. It returns [ErrClosed] soon after stop is closed; a nil stop is never closed. Call it
// or Table, once.
func (t *Ticket) Gather(stop <-chan struct{}, dst []byte) error {
	w, n := t.w, t.w.o.RowBytes
	if len(dst) != len(t.ids)*n {
		panic(fmt.Sprintf("plane: memory of %d bytes for %d rows of %d", len(dst), len(t.ids), n))
	}
	if err := w.o.Own.Gather(dst, t.ids); err != nil {
		return err
	}
	if !w.replaces() { // else the cached rows are not known yet
		w.each(len(t.cached), func(i int) {
			p := t.cached[i]
			copy(dst[int(p.row)*n:], w.cachedRow(p.at))
		})
	}
	if err := t.wait(stop); err != nil {
		return err
	}
	w.mu.Lock()
	chunks := w.slots.chunks
	w.mu.Unlock()
	held := t.held
	if w.replaces() {
		held = slices.Concat(t.held, t.cached)
	}
	if w.joint != nil {
		w.joint.gather(dst, t.ids, held)
	} else {
		w.each(len(held), func(i int) {
			p := held[i]
			copy(dst[int(p.row)*n:], w.slots.row(chunks, p.at))
		})
	}
	t.done()
	return nil
}

// Table waits as Gather does, and returns memory for the rows of all nodes, by number, in which those of the batch are and
// stay. It returns nil, and has not waited, where the window keeps no such memory, or a batch's rows are elsewhere too: in a
// cache, or on this machine.
func (t *Ticket) Table(stop <-chan struct{}) ([]byte, error) {
	w := t.w
	if !w.all() || len(t.held) < len(t.ids) {
		return nil, nil
	}
	if err := t.wait(stop); err != nil {
		return nil, err
	}
	t.done()
	if w.joint != nil {
		return w.o.Machine.Rows[:w.o.Nodes*w.o.RowBytes], nil
	}
	return w.slots.whole, nil
}

// wait waits for the rows of the batch.
func (t *Ticket) wait(stop <-chan struct{}) error {
	select {
	case <-t.ready:
	case <-stop:
	}
	select {
	case <-stop: // also if the rows are there: those that it shares with an earlier batch, which was given up, may be on their way
		return ErrClosed
	default:
	}
	return t.err
}

// done says that the batch has its rows.
func (t *Ticket) done() {
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.change.Broadcast()
	w.open--
	switch {
	case w.joint != nil:
		w.joint.gathered++ // the other ranks learn it at the next tick
	case w.replaces():
		w.gathered(t)
	default:
		for _, p := range t.held {
			if w.rows.done(p.at) {
				w.slot.drop(t.ids[p.row])
			}
		}
	}
}

// Close ends the window: Ask and Gather return, and requests of a source that is not a [Collective] end, of which the other
// ranks of a [Machine] need none any more. It does not wait for the other ranks, which end their windows at their own times;
// see Wait.
func (w *Window) Close() { w.close(false) }

// Abandon is Close for a rank that has failed: with a [Collective] source or a [Machine] it does not tell the other ranks
// that this rank has left, because the reason of the failure must reach them first.
func (w *Window) Abandon() { w.close(true) }

func (w *Window) close(silent bool) {
	w.mu.Lock()
	w.closed, w.silent = true, silent
	if w.joint != nil && w.joint.apart != nil && !silent {
		w.joint.apart.leave()
	}
	w.change.Broadcast()
	w.mu.Unlock()
	w.cancel()
}

// isClosed reports whether Close or Abandon was called.
func (w *Window) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// Wait waits until the window's goroutines have ended. With a [Collective] source or a [Machine], this is when all ranks
// have closed their windows or had all batches.
func (w *Window) Wait() { w.run.Wait() }
