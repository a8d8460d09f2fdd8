//go:build linux

package plane

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// onMachine is the rows of the ranks of a machine, or of one of them.
type onMachine struct {
	ranks []int
	world int
}

func (o onMachine) Has(v int32) bool { return v < nodes && slices.Contains(o.ranks, owner(v, o.world)) }

func (o onMachine) Gather(dst []byte, ids []int32) error {
	for i, v := range ids {
		if o.Has(v) {
			put(dst[i*rowBytes:], v)
		} else {
			dst[i*rowBytes] = 0xff
		}
	}
	return nil
}

// jointCase is a loop of ranks on machines.
type jointCase struct {
	machines [][]int
	apart    bool                       // each rank has its own rows alone, not those of its machine
	source   func(t *testing.T) counted // of each rank, which then has no rows; nil if they get them from each other
	cached   int
	room     int // rows of a window for each rank
	ahead    int
	inline   bool
	until    int // the loop is left after that many batches
}

// counted is a source that counts the rows that it was asked for.
type counted interface {
	Source
	asked() int64
}

func (d *direct) asked() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows
}

// run returns the rows that the machines have asked for in a loop, and the smallest number that they can: each once. most
// is that of windows of 2 batches, or of one where rows come from elsewhere.
func (c jointCase) run(t *testing.T, batches int) (asked, fewest, most int64) {
	t.Helper()
	world, of := 0, map[int]int{}
	for m, ranks := range c.machines {
		for _, r := range ranks {
			of[r] = m
			world++
		}
	}
	memory := make([][]byte, len(c.machines))
	for m := range memory {
		memory[m] = shared(t)
	}
	ownOf := func(r int) onMachine {
		if c.source != nil {
			return onMachine{nil, world}
		}
		if c.apart {
			return onMachine{[]int{r}, world}
		}
		return onMachine{c.machines[of[r]], world}
	}
	cached := func(r int) (ids []int32) {
		for v := int32(0); len(ids) < c.cached; v++ {
			if !ownOf(r).Has(v) {
				ids = append(ids, v)
			}
		}
		return ids
	}
	lists := make([][][]int32, world)
	for r := range lists {
		lists[r] = batchesOf(uint64(r+100*world), batches)
	}
	var mu sync.Mutex
	counts := make([]Counts, world)
	sources := make([]counted, world)
	for r := range sources {
		if c.source != nil {
			sources[r] = c.source(t)
		}
	}
	for r, err := range ranks(t, world, func(comm collective.Comm) error {
		r := comm.Rank()
		beside, err := comm.Split(collective.Site{Kind: "beside"})
		if err != nil {
			return err
		}
		x := exchange(beside)
		own := ownOf(r)
		x.Own = onMachine{[]int{r}, world}
		source, before := Source(x), int64(0)
		if c.source != nil {
			source = sources[r]
		}
		cache, err := NewCache(context.Background(), source, cached(r), nodes, rowBytes, 1<<20)
		if err != nil {
			return err
		}
		machine := &Machine{Comm: beside, Site: x.Site, Ranks: c.machines[of[r]], Rows: memory[of[r]], Nodes: nodes, Slots: slotsIn(memory[of[r]]), Got: gotIn(memory[of[r]], len(c.machines[of[r]]))}
		for _, until := range []int{c.until, batches} { // the second loop takes over the memory of the first
			if err := comm.Barrier(collective.Site{Kind: "loop"}); err != nil {
				return err
			}
			mu.Lock()
			counts[r] = Counts{}
			mu.Unlock()
			if c.source != nil {
				before = sources[r].asked()
			}
			w := Open(context.Background(), Options{
				Source: source, Own: own, Cache: cache, Counts: &counts[r], RowBytes: rowBytes, Bytes: int64(c.room * rowBytes), Batches: batches, Machine: machine, Inline: c.inline, Threads: 1,
			})
			if c.ahead == batches && until == batches {
				err = askAll(w, lists[r])
			} else {
				err = loop(w, lists[r], max(c.ahead, Depth(true)), until)
			}
			if err != nil {
				return fmt.Errorf("loop until %d: %w", until, err)
			}
			if c.inline && until < batches {
				return nil // in training the sampler tells the others
			}
			w.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		if c.source != nil && sources[r].asked()-before != counts[r].Rows().Remote {
			return fmt.Errorf("the source was asked for %d rows, and the window counts %d", sources[r].asked()-before, counts[r].Rows().Remote)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("%+v: rank %d: %v", c, r, err)
		}
	}
	for _, m := range c.machines {
		var needs []hotness.Trace
		reads, read := int64(0), int64(0)
		for _, r := range m {
			var trace hotness.Trace
			skip := cached(r)
			for _, b := range lists[r] {
				ids := slices.Clone(b)
				ids = slices.DeleteFunc(ids, func(v int32) bool {
					return ownOf(r).Has(v) || slices.Contains(skip, v) || ownOf(m[int(v)%len(m)]).Has(v) // the last copies it
				})
				slices.Sort(ids)
				trace = append(trace, ids)
			}
			needs = append(needs, trace)
			n := counts[r].Rows()
			asked += n.Remote
			reads += n.Own + n.Cached + n.Window + n.Remote
			read += int64(len(slices.Concat(lists[r]...)))
			if n.Bytes != n.Remote*rowBytes {
				t.Errorf("%+v: rank %d counts %+v", c, r, n)
			}
		}
		if c.until == batches && reads != read {
			t.Errorf("%+v: ranks %v count %d rows, and read %d", c, m, reads, read)
		}
		fewest += hotness.Merge(needs...).Windowed(batches, nil)
		kept := min(2, c.ahead)
		if c.source != nil {
			kept = 0
		}
		most += hotness.Merge(needs...).Windowed(kept, nil)
	}
	return asked, fewest, most
}

// shared is memory for all rows that ranks share. It is not of Go's heap, where the race detector would ask for more than
// the messages between the ranks.
func shared(t *testing.T) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, nodes*rowBytes+8*maxRanks+4*nodes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// maxRanks is the number of ranks for which shared has room behind the rows.
const maxRanks = 4

// gotIn is the numbers of Machine.Got in such memory.
func gotIn(memory []byte, ranks int) []atomic.Int64 {
	return unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&memory[nodes*rowBytes])), ranks)
}

// slotsIn is Machine.Slots in such memory.
func slotsIn(memory []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(&memory[nodes*rowBytes+8*maxRanks])), nodes)
}

// askAll gets the rows of all batches before it gathers the first one.
func askAll(w *Window, batches [][]int32) error {
	defer w.Close()
	var tickets []*Ticket
	for _, ids := range batches {
		t, err := w.Ask(ids)
		if err != nil {
			return err
		}
		tickets = append(tickets, t)
	}
	<-tickets[len(tickets)-1].ready
	for i, t := range tickets {
		got := make([]byte, len(batches[i])*rowBytes)
		if err := t.Gather(nil, got); err != nil {
			return err
		}
		if !bytes.Equal(got, rowsOf(batches[i])) {
			return fmt.Errorf("batch %d has wrong rows", i)
		}
	}
	return nil
}

// Ranks of a machine ask for a row once in a window, and all of them get the right ones: with machines of several ranks and
// of one, with and without a cache, with little room and much, in a goroutine of the window's own and in the one that asks.
func TestJoint(t *testing.T) {
	const batches = 30
	for _, machines := range [][][]int{{{0, 1}, {2, 3}}, {{0, 1, 2}, {3}}, {{0, 1, 2, 3}}, {{0}, {1}}} {
		for _, c := range []jointCase{
			{ahead: batches, room: 1 << 20},
			{ahead: 6, room: 1 << 20, cached: 40},
			{ahead: 6, room: 20},
			{ahead: 5, room: 1 << 20, inline: true},
			{ahead: batches, room: 1 << 20, inline: true, cached: 40},
		} {
			c.machines, c.until, c.apart = machines, batches, len(machines) == 1
			asked, fewest, most := c.run(t, batches)
			if asked < fewest || c.room == 1<<20 && asked > most || c.ahead == batches && asked != fewest {
				t.Errorf("%+v: the machines asked for %d rows; once in a loop are %d, and once in 2 batches %d", c, asked, fewest, most)
			}
		}
	}
}

// All ranks leave a loop at the same step, although they know of others' batches, and the next loop uses the same memory.
func TestJointLeave(t *testing.T) {
	for _, until := range []int{0, 1, 7, 29} {
		jointCase{machines: [][]int{{0, 1}, {2}}, ahead: 6, room: 1 << 20, until: until}.run(t, 30)
	}
}

// A rank that needs a node that does not exist, or says that it has gathered batches of which it has not told, fails the
// others with its name, and so does one that has died.
func TestJointFails(t *testing.T) {
	site := collective.Site{Kind: "rows of features"}
	for name, c := range map[string]struct {
		tell func(c collective.Comm, message []byte) error
		want string
	}{
		"a node": {func(c collective.Comm, m []byte) error {
			_, err := c.AllToAll(site, [][]byte{appendIDs(m, []int32{nodes}), nil})
			return err
		}, "rank 1 needs the features of node 300"},
		"gathered": {func(c collective.Comm, m []byte) error {
			headWord(m, 3, 9)
			_, err := c.AllToAll(site, [][]byte{m, nil})
			return err
		}, "rank 1 says that it has gathered 9 batches, and has told of 0"},
		"dead": {func(c collective.Comm, _ []byte) error {
			c.Abort("rank 1 was killed")
			return nil
		}, "rank 1 was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ranks(t, 2, func(comm collective.Comm) error {
				if comm.Rank() == 1 {
					m := make([]byte, streamHead)
					headWord(m, 0, kindTick)
					return c.tell(comm, m)
				}
				w := Open(context.Background(), Options{
					Source: exchange(comm), Own: held{0, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 3, Threads: 1,
					Machine: &Machine{Ranks: []int{0, 1}, Rows: make([]byte, nodes*rowBytes), Nodes: nodes, Slots: make([]int32, nodes)},
				})
				defer w.Wait()
				defer w.Close()
				ticket, err := w.Ask([]int32{1, 2, 3})
				if err != nil {
					return err
				}
				return ticket.Gather(nil, make([]byte, 3*rowBytes))
			})
			if errs[0] == nil || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("%v, want %q", errs[0], c.want)
			}
		})
	}
}

// A table gives what was put into it, in small and large graphs.
func TestTable(t *testing.T) {
	for _, nodes := range []int{1000, tableNodes + 1} {
		x := newTable(nodes)
		for v := range int32(100) {
			x.put(9*v, v)
		}
		x.drop(27)
		for v := range int32(900) {
			at, ok := x.get(v)
			if want := v%9 == 0 && v != 27; ok != want || ok && at != v/9 {
				t.Errorf("node %d: %d, %v", v, at, ok)
			}
		}
	}
}
