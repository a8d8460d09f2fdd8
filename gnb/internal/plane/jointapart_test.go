//go:build linux

package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// countedDisk is a disk that counts the rows that are read.
type countedDisk struct {
	*Disk
	mu   sync.Mutex
	rows int64
}

func (d *countedDisk) Scatter(ctx context.Context, ids []int32, to func(i int) []byte) error {
	d.mu.Lock()
	d.rows += int64(len(ids))
	d.mu.Unlock()
	return d.Disk.Scatter(ctx, ids, to)
}

func (d *countedDisk) asked() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows
}

// diskOf returns a disk with the rows of all nodes.
func diskOf(t *testing.T) counted {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	all := make([]int32, nodes)
	for v := range all {
		all[v] = int32(v)
	}
	if err := os.WriteFile(path, rowsOf(all), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDisk(path, 0, nodes, rowBytes, DiskOptions{Pread: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &countedDisk{Disk: d}
}

// Ranks of a machine ask servers or a disk for a row once in a window, by the source's own count, and all of them get the
// right ones: one rank, two and four, on one machine and on two, with and without a cache, with little room and much, and in
// a loop after one that all of them have left.
func TestJointApart(t *testing.T) {
	const batches = 30
	for name, source := range map[string]func(t *testing.T) counted{
		"servers": func(*testing.T) counted { return &direct{} },
		"disk":    diskOf,
	} {
		t.Run(name, func(t *testing.T) {
			for _, machines := range [][][]int{{{0}}, {{0, 1}}, {{0, 1, 2, 3}}, {{0, 1, 2}, {3}}} {
				if testing.Short() && len(machines[0]) > 2 {
					continue
				}
				for _, c := range []jointCase{
					{ahead: batches, room: 1 << 20},
					{ahead: 6, room: 1 << 20, cached: 40},
					{ahead: 6, room: 20},
					{ahead: 6, room: 1 << 20, cached: 40, inline: true},
					{ahead: 6, room: 20, inline: true},
					{ahead: 5, room: 1 << 20, until: 7},
				} {
					c.machines, c.source = machines, source
					if c.until == 0 {
						c.until = batches
					}
					asked, fewest, most := c.run(t, batches)
					if asked < fewest || asked > most || c.ahead == batches && asked != fewest {
						t.Errorf("%v, %d ahead, room %d: the machines asked for %d rows; once in a loop are %d, and once in each batch of all ranks %d", machines, c.ahead, c.room, asked, fewest, most)
					}
				}
			}
		})
	}
}

// A rank whose source fails returns that error, and the others' errors name the rank, or its error if its end is seen first. When a rank has died, the others end.
// A rank that leaves or fails while its source does not answer does not wait for it, and neither do the others.
func TestJointApartFails(t *testing.T) {
	hung := func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	gone := errors.New("the server is gone")
	for name, c := range map[string]struct {
		fail  func(ctx context.Context, call int) error // of rank 1's source
		rank1 func(w *Window, c collective.Comm) error  // instead of gathering
		want  [2]string                                 // of which a | divides two
	}{
		"source": {fail: func(context.Context, int) error { return gone }, want: [2]string{"rank 1 could not get rows of features for its machine|the server is gone", gone.Error()}},
		"later":  {fail: func(_ context.Context, call int) error { return map[bool]error{true: gone}[call > 2] }, want: [2]string{"rank 1 could not get rows of features for its machine|the server is gone", gone.Error()}},
		"dead": {fail: hung, rank1: func(w *Window, c collective.Comm) error {
			c.Abort("rank 1 was killed")
			w.Abandon()
			return errors.New("killed")
		}, want: [2]string{"rank 1 was killed", "killed"}},
		"left": {fail: hung, rank1: func(w *Window, _ collective.Comm) error {
			w.Close()
			return ErrLeft
		}, want: [2]string{ErrLeft.Error(), ErrLeft.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			memory := shared(t)
			lists := [][][]int32{batchesOf(5, 8), batchesOf(6, 8)}
			for r, err := range ranks(t, 2, func(comm collective.Comm) error {
				r := comm.Rank()
				source := &direct{}
				if r == 1 {
					source.fail = c.fail
				}
				w := Open(context.Background(), Options{
					Source: source, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 8, Threads: 1,
					Machine: &Machine{Comm: comm, Site: collective.Site{Kind: "machine"}, Ranks: []int{0, 1}, Rows: memory, Nodes: nodes, Slots: slotsIn(memory), Got: gotIn(memory, 2)},
				})
				defer w.Wait()
				if r == 0 || c.rank1 == nil {
					return loop(w, lists[r], 6, 8)
				}
				for _, ids := range lists[r][:3] {
					if _, err := w.Ask(ids); err != nil {
						return err
					}
				}
				return c.rank1(w, comm)
			}) {
				if err == nil || !slices.ContainsFunc(strings.Split(c.want[r], "|"), func(s string) bool { return strings.Contains(err.Error(), s) }) {
					t.Errorf("rank %d: %v, want %q", r, err, c.want[r])
				}
			}
		})
	}
}

// A source that answers late delays the ranks of its machine, and no row is wrong or asked for twice.
func TestJointApartWaits(t *testing.T) {
	memory, back := shared(t), make(chan struct{})
	lists := [][][]int32{batchesOf(7, 12), batchesOf(8, 12)}
	for r, err := range ranks(t, 2, func(comm collective.Comm) error {
		r := comm.Rank()
		source := &direct{}
		if r == 1 {
			source.fail = func(_ context.Context, call int) error {
				if call == 3 {
					<-back // the server has started again
				}
				return nil
			}
		}
		w := Open(context.Background(), Options{
			Source: source, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 12, Threads: 1,
			Machine: &Machine{Comm: comm, Site: collective.Site{Kind: "machine"}, Ranks: []int{0, 1}, Rows: memory, Nodes: nodes, Slots: slotsIn(memory), Got: gotIn(memory, 2)},
		})
		defer w.Wait()
		if r == 1 {
			defer w.Close()
			tickets := make([]*Ticket, 12)
			for i, ids := range lists[1] {
				var err error
				if tickets[i], err = w.Ask(ids); err != nil {
					return err
				}
			}
			select {
			case <-tickets[11].ready:
				return fmt.Errorf("the rows came without the source")
			default:
			}
			close(back)
			for i, ids := range lists[1] {
				got := make([]byte, len(ids)*rowBytes)
				if err := tickets[i].Gather(nil, got); err != nil || string(got) != string(rowsOf(ids)) {
					return fmt.Errorf("batch %d has wrong rows, or %w", i, err)
				}
			}
			return nil
		}
		return loop(w, lists[0], 6, 12)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// sampledLoop is loop for ranks that sample each batch together, over the connection that tells what it needs: before each
// Ask they meet, and a rank that has left says so there.
func sampledLoop(w *Window, comm collective.Comm, batches [][]int32, ahead, until int) error {
	meet := func(leaves byte) (left bool, err error) {
		all, err := comm.AllGather(collective.Site{Kind: "sampler"}, []byte{leaves})
		return slices.ContainsFunc(all, func(b []byte) bool { return len(b) == 1 && b[0] == 1 }), err
	}
	tickets, failed, stop := make(chan *Ticket, ahead), make(chan error, 1), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		defer close(tickets)
		var leaves byte
		for i, ids := range batches {
			if left, err := meet(leaves); err != nil || left {
				failed <- cmp.Or(err, ErrLeft)
				return
			}
			t, err := w.Ask(ids)
			if err != nil {
				failed <- err
				if i+1 < len(batches) {
					_, _ = meet(1)
				}
				return
			}
			select {
			case tickets <- t:
			case <-stop:
				leaves = 1
			}
		}
	})
	defer asking.Wait()
	defer w.Close()
	defer close(stop)
	return gathered(tickets, failed, stop, batches[:until])
}

// Ranks that sample batches together leave a loop at the same one, at once or after several, with slow sources and fast
// ones, and have one window in the next loop; a rank whose source fails ends the loop on all of them.
func TestJointApartSampled(t *testing.T) {
	const batches = 20
	for name, c := range map[string]struct {
		until int
		fail  int // the call of rank 1's source that fails; 0 for none
		late  time.Duration
	}{
		"all": {until: batches}, "at once": {}, "one": {until: 1}, "some": {until: 7}, "some, late": {until: 7, late: time.Millisecond},
		"the first fails": {until: batches, fail: 1}, "a later one fails": {until: batches, fail: 9, late: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			memory := shared(t)
			lists := [][][]int32{batchesOf(3, batches), batchesOf(4, batches)}
			var together hotness.Trace
			for i := range batches {
				ids := slices.Concat(lists[0][i], lists[1][i])
				slices.Sort(ids)
				together = append(together, slices.Compact(ids))
			}
			most, asked := together.Windowed(0, nil), int64(0)
			gone := errors.New("the server is gone")
			var mu sync.Mutex
			for r, err := range ranks(t, 2, func(comm collective.Comm) error {
				r := comm.Rank()
				for _, until := range []int{c.until, batches} {
					if err := comm.Barrier(collective.Site{Kind: "loop"}); err != nil {
						return err
					}
					source := &direct{fail: func(_ context.Context, call int) error {
						time.Sleep(time.Duration(r+call%3) * c.late)
						if r == 1 && call == c.fail {
							return gone
						}
						return nil
					}}
					w := Open(context.Background(), Options{
						Source: source, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: batches, Threads: 1, Inline: true,
						Machine: &Machine{Comm: comm, Site: collective.Site{Kind: "machine"}, Ranks: []int{0, 1}, Rows: memory, Nodes: nodes, Slots: slotsIn(memory), Got: gotIn(memory, 2)},
					})
					err := sampledLoop(w, comm, lists[r], 4, until)
					w.Wait()
					if err != nil {
						return err
					}
					mu.Lock()
					if until == batches {
						asked += source.asked()
					}
					mu.Unlock()
				}
				return nil
			}) {
				switch {
				case c.fail == 0 && err != nil:
					t.Errorf("rank %d: %v", r, err)
				case c.fail > 0 && (err == nil || !strings.Contains(err.Error(), gone.Error()) && (r == 1 || !strings.Contains(err.Error(), gettingRows))):
					// Rank 0 hears that the other one failed or, if that has ended the run by then, why.
					t.Errorf("rank %d: %v", r, err)
				}
			}
			if loops := map[bool]int64{true: 2, false: 1}[c.until == batches]; c.fail == 0 && (asked == 0 || asked > loops*most) {
				t.Errorf("the ranks asked for %d rows in %d loops; once in each batch of both are %d", asked, loops, most)
			}
		})
	}
}

// A read that comes late, after its loop has been left, changes no row of the next loop, which has the same memory.
func TestJointApartReadsLate(t *testing.T) {
	memory, there := shared(t), make(chan struct{})
	for r, err := range ranks(t, 2, func(comm collective.Comm) error {
		r := comm.Rank()
		machine := &Machine{Comm: comm, Site: collective.Site{Kind: "machine"}, Ranks: []int{0, 1}, Rows: memory, Nodes: nodes, Slots: slotsIn(memory), Got: gotIn(memory, 2)}
		source := &direct{fail: func(ctx context.Context, call int) error {
			if r == 1 && call == 1 { // a request that does not end with the loop
				<-ctx.Done()
				select {
				case <-there:
				case <-time.After(100 * time.Millisecond): // the next loop waits for it
				}
			}
			return nil
		}}
		open := func() *Window {
			return Open(context.Background(), Options{
				Source: source, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 2, Threads: 1, Inline: true, Machine: machine,
			})
		}
		left := open()
		if _, err := left.Ask([]int32{1, 3, 5}); err != nil { // rank 1 gets the rows of odd nodes
			return err
		}
		left.Close()
		if err := comm.Barrier(collective.Site{Kind: "loop"}); err != nil {
			return err
		}
		w, ids := open(), []int32{7, 9, 11}
		defer w.Close()
		ticket, err := w.Ask(ids)
		if err != nil {
			return err
		}
		<-ticket.ready
		if r == 1 {
			close(there)
		}
		left.Wait()
		if err := comm.Barrier(collective.Site{Kind: "late"}); err != nil {
			return err
		}
		got := make([]byte, len(ids)*rowBytes)
		if err := ticket.Gather(nil, got); err != nil {
			return err
		}
		if string(got) != string(rowsOf(ids)) {
			return errors.New("rows of another loop")
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
