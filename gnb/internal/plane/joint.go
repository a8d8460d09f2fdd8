package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	// of the machine's. One window at a time is open over it.
	Rows  []byte
	Nodes int
	// Got is a number for each of Ranks, in memory that they share, unless the source is an Exchange: n batches whose rows the
	// rank has got from elsewhere, or -1 after an error, or leftAfter(n) when it has left the loop.
	Got []atomic.Int64
}

// jointDepth is the number of ticks from the one in which a rank tells the others what a batch needs to the one after
// which the batch's rows are there: a rank asks for them in the next tick, they come depth ticks later, and in the tick
// after that the ranks tell each other that they have copied what came.
const jointDepth = depth + 2

// joint is the window of the ranks of a machine, as one of them knows it. At each tick they tell each other what their
// next batches need and how many they have gathered, and from that all make the same changes to it, so that they need no
// lock and no further message. When a rank has died, the next tick fails on the others. See apart for a source that is not
// the ranks.
type joint struct {
	w     *Window
	s     *stream
	apart *apart
	m     *Machine
	me    int // number in m.Ranks
	at    table
	slots []jointSlot // that have or had a row
	free  []int32

	gathered int       // batches that this rank has gathered
	gone     []int     // of each rank: batches that it has gathered, as far as this rank knows
	open     [][]batch // of each rank: the other ones of which it has told
	last     *asking   // that the next tick makes
	under    []*asking // under way
	copied   sync.WaitGroup
	done     []*Ticket // of the last ticks; nil where no one gathers
}

// batch is the slots of the rows that a batch of a rank needs.
type batch []int32

// jointSlot is a slot of a row.
type jointSlot struct {
	node int32
	uses int32 // batches of all ranks that need it
	by   int32 // the number of the rank that asks for it, while ranks agree on that; else -1
}

// asking is the rows that this rank asks for at a tick.
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
	if me < 0 || len(m.Rows) < m.Nodes*w.o.RowBytes {
		panic(fmt.Sprintf("plane: rank %d is not of the ranks %v of its machine, or they have no memory for the rows of %d nodes", x.Comm.Rank(), m.Ranks, m.Nodes))
	}
	if from != nil {
		from.me = me
		m.Got[me].Store(0) // the others read it after the first tick
	}
	j := &joint{w: w, s: x.stream(w.o.Inline), apart: from, m: m, me: me, at: newTable(m.Nodes), gone: make([]int, len(m.Ranks)), open: make([][]batch, len(m.Ranks)), last: &asking{}}
	chunk := chunkRows * w.o.RowBytes
	for rows := m.Rows[:m.Nodes*w.o.RowBytes]; len(rows) > 0; rows = rows[min(chunk, len(rows)):] {
		w.slots.chunks = append(w.slots.chunks, rows[:min(chunk, len(rows))])
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
		room = int(w.o.Bytes/int64(w.o.RowBytes)) * len(j.m.Ranks)
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
		if w.open <= w.most || len(j.slots)-len(j.free)+coming <= room {
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
	w := j.w
	var needs []int32
	if t != nil {
		needs = make([]int32, len(t.held))
		for i, p := range t.held {
			needs[i] = t.ids[p.row]
		}
	}
	j.copied.Wait() // the others will read what came at the tick before
	w.mu.Lock()
	gathered := j.gathered
	w.mu.Unlock()
	ask := j.last
	if j.apart != nil {
		ask = &asking{} // of no rank
	}
	rows, says, err := j.s.next(ask.ids, gathered, j.m.Ranks, needs)
	if err != nil {
		return err
	}
	says[j.s.x.Comm.Rank()].gathered = gathered
	if err := j.agree(t, needs, says); err != nil {
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

// agree makes the changes of a tick to the window: it frees the rows that no batch needs any more, gives slots to those
// that the ranks' batches need and that have none, and finds those of them that this rank asks for, which are j.last.
func (j *joint) agree(t *Ticket, needs []int32, says []told) error {
	w := j.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range j.m.Ranks {
		for ; j.gone[i] < says[r].gathered; j.gone[i]++ {
			if len(j.open[i]) == 0 {
				return fmt.Errorf("rank %d says that it has gathered %d batches, and has told of %d", r, says[r].gathered, j.gone[i])
			}
			for _, at := range j.open[i][0] {
				s := &j.slots[at]
				if s.uses--; s.uses == 0 {
					j.at.drop(s.node)
					j.free = append(j.free, at)
				}
			}
			j.open[i] = j.open[i][1:]
		}
	}
	var fresh []int32 // nodes
	for i, r := range j.m.Ranks {
		ids := needs
		if i != j.me {
			ids = make([]int32, 0, len(says[r].needs)/4)
			for b := says[r].needs; len(b) > 0; b = b[4:] {
				ids = append(ids, int32(binary.LittleEndian.Uint32(b)))
			}
		}
		slots := make(batch, len(ids))
		for k, v := range ids {
			if uint(v) >= uint(j.m.Nodes) {
				return fmt.Errorf("rank %d needs the features of node %d, but nodes are 0 to %d; all ranks must have the same division of the dataset", r, v, j.m.Nodes-1)
			}
			at, ok := j.at.get(v)
			if !ok {
				at = j.take()
				j.at.put(v, at)
				j.slots[at] = jointSlot{node: v, by: int32(i)}
				fresh = append(fresh, v)
			}
			s := &j.slots[at]
			if s.by >= 0 && j.turn(v, i) < j.turn(v, int(s.by)) {
				s.by = int32(i)
			}
			s.uses++
			slots[k] = at
		}
		if i == j.me && t != nil {
			for k := range t.held {
				t.held[k].at = slots[k]
			}
		}
		j.open[i] = append(j.open[i], slots)
	}
	slices.Sort(fresh)
	j.last = &asking{}
	for _, v := range fresh {
		at, _ := j.at.get(v)
		if int(j.slots[at].by) == j.me {
			j.last.ids, j.last.slots = append(j.last.ids, v), append(j.last.slots, at)
		}
		j.slots[at].by = -1
	}
	if t != nil {
		t.asked = j.last.ids
		w.o.Counts.add(w.asks(t))
	}
	w.change.Broadcast()
	return nil
}

// turn says which of the ranks that need a row asks for it: the one with the smallest number. They differ from row to
// row, so that the ranks ask for about as many.
func (j *joint) turn(v int32, rank int) int {
	n := len(j.m.Ranks)
	return (rank + n - int(v)%n) % n
}

// take returns a free slot, one that had a row if there is one.
func (j *joint) take() int32 {
	if n := len(j.free); n > 0 {
		at := j.free[n-1]
		j.free = j.free[:n-1]
		return at
	}
	j.slots = append(j.slots, jointSlot{})
	return int32(len(j.slots) - 1)
}
