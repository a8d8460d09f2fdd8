package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Machine is ranks that are on one machine, whose windows are one: a row that several of them need in the batches of a window
// is asked for by one of them, and all read it where that one has put it. A row counts as needed until all of them have
// gathered the batches that need it.
//
// All ranks of an [Exchange], or of Comm, must have a Machine or none. They ask for the same number of batches, and leave a
// loop at the same one.
type Machine struct {
	// Comm connects the ranks of all machines where the source is not an Exchange, which has its own; no other goroutine may
	// make its collectives. Site is theirs, the same on all ranks.
	Comm collective.Comm
	Site collective.Site
	// Ranks are the numbers of the machine's ranks in Comm, ascending, with this rank's.
	Ranks []int
	// Rows is memory that they share, with room for the rows of Nodes nodes. Memory that was never written to takes none
	// of the machine's. One window at a time is open over it: the next one opens when this rank's goroutines of the one before
	// have ended, which may still write rows that came late.
	Rows  []byte
	Nodes int
	// Slots is a number for each of Nodes nodes, in memory that they share: where in Rows the node's row is.
	Slots []int32
	// Got is a number for each of Ranks, in memory that they share, unless the source is an Exchange: n batches whose rows the
	// rank has got from elsewhere, or -1 after an error, or leftAfter(n) when it has left the loop.
	Got []atomic.Int64

	window *Window // this rank's last one
}

// jointDepth is the number of ticks from the one in which a rank tells the others what a batch needs to the one after
// which the batch's rows are there: a rank asks for them in the next tick, they come depth ticks later, and in the tick
// after that the ranks tell each other that they have copied what came.
const jointDepth = depth + 2

// joint is the window of the ranks of a machine, as one of them knows it. Each of n ranks keeps the rows of a share of the
// nodes, those whose number modulo n is its own. At each tick a rank tells each other one which rows of that one's share
// its next batch needs, and how many batches it has gathered. From what it is told a rank finds the rows of its share that
// no slot has, gives them slots, and asks for them. It writes the slots where all ranks read them, which needs no answer:
// a batch is gathered only when all ranks have got what was asked for, and until all batches that need a row have been
// gathered, its slot stays. So the work of a rank does not grow with the number of ranks, and there is no lock. When a
// rank has died, the next tick fails on the others. See apart for a source that is not the ranks.
type joint struct {
	w     *Window
	s     *stream
	apart *apart
	m     *Machine
	me    int // number in m.Ranks

	rows *rows // of this rank's share; slot k of it is slot k·n + me of the machine

	told     []bool    // of each node: this rank has told that a batch of the loop needs its row; nil where rows can lose their slots
	gathered int       // batches that this rank has gathered
	others   int       // rows that the other ranks keep, as far as this rank knows
	gone     []int     // of each rank: batches that it has gathered, as far as this rank knows
	open     [][]batch // of each rank: the other ones of which it has told
	last     *asking   // that the next tick makes
	under    []*asking // under way
	copied   sync.WaitGroup
	done     []*Ticket // of the last ticks; nil where no one gathers
}

// batch is the slots of this rank's share that a batch of a rank needs.
type batch []int32

// asking is the rows that this rank asks for at a tick, and their slots of the machine.
type asking struct {
	ids, slots []int32
}

// newJoint takes the source, or nil if that is not an Exchange.
func newJoint(w *Window, x *Exchange) *joint {
	m := w.o.Machine
	var from *apart
	if x == nil {
		x = &Exchange{Comm: m.Comm, Site: m.Site, Own: w.o.Own, RowBytes: w.o.RowBytes}
		from = &apart{w: w, m: m, comm: m.Comm}
	}
	me := slices.Index(m.Ranks, x.Comm.Rank())
	if me < 0 || len(m.Rows) < m.Nodes*w.o.RowBytes || len(m.Slots) < m.Nodes {
		panic(fmt.Sprintf("plane: rank %d is not of the ranks %v of its machine, or they have no memory for the rows of %d nodes", x.Comm.Rank(), m.Ranks, m.Nodes))
	}
	if m.window != nil {
		m.window.Wait()
	}
	m.window = w
	if from != nil {
		from.me = me
		m.Got[me].Store(0) // the others read it after the first tick
	}
	j := &joint{w: w, s: x.stream(w.o.Inline), apart: from, m: m, me: me, rows: w.rows, gone: make([]int, len(m.Ranks)), open: make([][]batch, len(m.Ranks)), last: &asking{}}
	w.slots.split(m.Rows[:m.Nodes*w.o.RowBytes])
	if w.all() {
		j.told = make([]bool, m.Nodes)
	}
	return j
}

func (j *joint) depth() int {
	if j.apart != nil {
		return 0
	}
	return jointDepth
}

// tell tells the other ranks, in place of a tick, that this one has failed to get rows from elsewhere.
func (j *joint) tell(err error) {
	x := j.s.x
	if reason := errors.Unwrap(err); reason != nil {
		err = reason
	}
	_, _ = x.all(x.Comm.Rank(), err, gettingRows) // it returns the error
}

func (j *joint) end() {
	j.copied.Wait()
	j.s.end()
}

// admit waits until the rows of a batch have room. Rows of the other ranks' batches come without waiting for this one, so
// the ranks together keep about their number times Options.Bytes.
func (j *joint) admit(t *Ticket) error {
	w, room := j.w, len(t.held)
	if w.o.RowBytes > 0 {
		room = w.room(0) * len(j.m.Ranks)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.refuses(); err != nil {
			return err
		}
		coming := 0
		for _, q := range append(w.queue, t) {
			coming += len(q.held)
		}
		if w.open <= w.most || j.rows.needed+j.others+coming <= room {
			break
		}
		w.change.Wait()
	}
	w.queue = append(w.queue, t)
	w.asked++
	w.open++
	w.change.Broadcast()
	return nil
}

// tick implements ticker.
func (j *joint) tick(t *Ticket) error {
	w, n := j.w, len(j.m.Ranks)
	needs, again := make([][]int32, n), int64(0) // of each rank's share; a row that stays need not be told again
	if t != nil {
		for i := range needs {
			if j.told == nil {
				needs[i] = make([]int32, 0, len(t.held)/n+len(t.held)/(8*n)+8)
			}
		}
		for _, p := range t.held {
			v := t.ids[p.row]
			if uint(v) >= uint(j.m.Nodes) {
				return fmt.Errorf("a batch needs the features of node %d, but nodes are 0 to %d", v, j.m.Nodes-1)
			}
			if j.told != nil {
				if j.told[v] {
					again++
					continue
				}
				j.told[v] = true
			}
			needs[int(v)%n] = append(needs[int(v)%n], v)
		}
		w.o.Counts.add(Rows{Window: again})
	}
	j.copied.Wait() // the others will read what came at the tick before
	w.mu.Lock()
	gathered, needed := j.gathered, j.rows.needed
	w.mu.Unlock()
	ask := j.last
	if j.apart != nil {
		ask = &asking{} // of no rank
	}
	rows, says, err := j.s.next(ask.ids, gathered, needed, j.m.Ranks, needs)
	if err != nil {
		return err
	}
	says[j.s.x.Comm.Rank()].gathered = gathered
	if err := j.agree(needs[j.me], says); err != nil {
		return err
	}
	if j.apart != nil {
		if t != nil { // else this rank has left, and gets no row
			j.apart.begin(j.last, t)
		}
		return nil
	}
	if j.under = append(j.under, ask); len(j.under) > depth {
		came := j.under[0]
		j.under = j.under[1:]
		copying := func() {
			j.s.x.visit(came.ids, rows, func(i int) []byte { return w.slots.row(w.slots.chunks, came.slots[i]) })
		}
		if j.s.inline {
			copying()
		} else {
			j.copied.Go(copying)
		}
	}
	if j.done = append(j.done, t); len(j.done) > jointDepth {
		t, j.done = j.done[0], j.done[1:]
		if t != nil {
			w.mu.Lock()
			w.sent = w.sent[1:]
			w.mu.Unlock()
			close(t.ready)
		}
	}
	return nil
}

// agree makes the changes of a tick to this rank's share of the window: it frees the slots of rows that no batch needs any
// more, gives slots to those that the ranks' batches need and that have none, and makes these j.last. A row that this rank
// has itself, and another rank of the machine needs, is copied.
func (j *joint) agree(mine []int32, says []told) error {
	w := j.w
	w.mu.Lock()
	own, err := j.share(mine, says)
	w.change.Broadcast()
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return j.copyOwn(own)
}

// share is agree but for the copies, of whose rows it returns the slots. The caller holds the lock.
func (j *joint) share(mine []int32, says []told) (own asking, err error) {
	w := j.w
	j.others = 0
	for i, r := range j.m.Ranks {
		if i != j.me {
			j.others += says[r].kept
		}
		for ; j.gone[i] < says[r].gathered; j.gone[i]++ {
			if len(j.open[i]) == 0 {
				return own, fmt.Errorf("rank %d says that it has gathered %d batches, and has told of %d", r, says[r].gathered, j.gone[i])
			}
			for _, k := range j.open[i][0] {
				j.rows.done(k)
			}
			j.open[i] = j.open[i][1:]
		}
	}
	var fresh []int32 // nodes
	needed := 0
	for i, r := range j.m.Ranks {
		ids := mine
		if i != j.me {
			ids = make([]int32, 0, len(says[r].needs)/4)
			for b := says[r].needs; len(b) > 0; b = b[4:] {
				ids = append(ids, int32(binary.LittleEndian.Uint32(b)))
			}
		}
		slots := make(batch, len(ids))
		for at, v := range ids {
			if uint(v) >= uint(j.m.Nodes) || int(v)%len(j.m.Ranks) != j.me {
				return own, fmt.Errorf("rank %d needs the features of node %d, but nodes are 0 to %d, and it is not for this rank to get them; all ranks must have the same division of the dataset", r, v, j.m.Nodes-1)
			}
			k := j.m.Slots[v] / int32(len(j.m.Ranks))
			if !j.rows.has(k, v) {
				k = j.take(v)
				fresh = append(fresh, v)
			}
			j.rows.need(k)
			slots[at] = k
		}
		needed += len(ids)
		j.open[i] = append(j.open[i], slots)
	}
	ascending(fresh)
	j.last = &asking{}
	for _, v := range fresh {
		to := j.last
		if w.o.Own.Has(v) {
			to = &own
		}
		to.ids, to.slots = append(to.ids, v), append(to.slots, j.m.Slots[v])
	}
	w.o.Counts.add(Rows{Remote: int64(len(j.last.ids)), Window: int64(needed - len(j.last.ids)), Bytes: int64(len(j.last.ids) * w.o.RowBytes)})
	return own, nil
}

// copyOwn copies rows that this rank has itself.
func (j *joint) copyOwn(own asking) error {
	w, size := j.w, j.w.o.RowBytes
	if len(own.ids) == 0 {
		return nil
	}
	b := make([]byte, len(own.ids)*size)
	// The rows may be in a mapped file, and this goroutine is not the program's: a fault here would end the worker.
	err := mapped.Guard(func() error { return w.o.Own.Gather(b, own.ids) })
	for i, at := range own.slots {
		copy(w.slots.row(w.slots.chunks, at), b[i*size:])
	}
	return err
}

// gather copies the rows of held from where they are in Machine.Rows to their places in dst [len(ids) rows].
func (j *joint) gather(dst []byte, ids []int32, held []place) {
	w, size := j.w, j.w.o.RowBytes
	table := simd.Rows{Data: words(j.m.Rows[:j.m.Nodes*size]), Stride: size / 4, Via: j.m.Slots[:j.m.Nodes]}
	to := words(dst)
	if size%4 != 0 || to == nil || table.Data == nil {
		w.each(len(held), func(i int) {
			p := held[i]
			copy(dst[int(p.row)*size:], w.slots.row(w.slots.chunks, j.m.Slots[ids[p.row]]))
		})
		return
	}
	parallel.For(w.o.Threads, len(held), max(16, (1<<16)/max(size, 1)), func(lo, hi int) {
		for lo < hi { // rows that follow each other in dst too: all, if none is on this machine or cached
			next := lo + 1
			for next < hi && held[next].row == held[next-1].row+1 {
				next++
			}
			first, n := int(held[lo].row), next-lo
			simd.GatherRows(to[first*table.Stride:(first+n)*table.Stride], &table, table.Stride, ids[first:first+n])
			lo = next
		}
	})
}

// words is memory as numbers of four bytes, whose bits a copy keeps; nil if it is not aligned for them.
func words(b []byte) []float32 {
	if at := unsafe.SliceData(b); uintptr(unsafe.Pointer(at))%4 == 0 {
		return unsafe.Slice((*float32)(unsafe.Pointer(at)), len(b)/4)
	}
	return nil
}

// take gives a node's row a slot of this rank's share. What Machine.Slots has of a row without a slot is where an earlier
// one was, or anything: the slot itself says whether it is this row's.
func (j *joint) take(v int32) int32 {
	n := int32(len(j.m.Ranks))
	k := v / n // whose slot of the machine is v
	if j.w.all() {
		j.rows.place(v, k)
	} else {
		k, _ = j.rows.take(v, j.w.room(0))
	}
	j.m.Slots[v] = k*n + int32(j.me)
	return k
}
