//go:build linux

package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// keptBatches is the number of batches of a loop.
const keptBatches = 20

// keptLoops are the batches of each rank's loops, with the number of batches after which all leave the loop.
func keptLoops(world int) (lists [][][]int32, until []int) {
	for r := range world {
		lists = append(lists, batchesOf(uint64(40+r), keptBatches))
	}
	return lists, []int{keptBatches, 7, keptBatches, 0, 12, keptBatches}
}

// distinct is the number of different nodes of batches.
func distinct(lists ...[][]int32) int {
	all := slices.Concat(slices.Concat(lists...)...)
	slices.Sort(all)
	return len(slices.Compact(all))
}

// A window keeps rows from loop to loop as far as it has room, and every row is right: after loops that were left early, with
// room for less than a batch, and by number or by map. With room for all rows each is asked for once, unless it had not come
// when a loop was left.
func TestKept(t *testing.T) {
	lists, until := keptLoops(1)
	for _, room := range []int{0, 20, 90, 1 << 20} {
		for _, inline := range []bool{false, true} {
			source, kept, known := &direct{}, &Kept{}, nodes
			if inline {
				known = 0
			}
			for i, until := range until {
				w := Open(t.Context(), Options{
					Source: source, Nodes: known, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: int64(room * rowBytes), Batches: keptBatches, Inline: inline, Threads: 2, Kept: kept,
				})
				if err := loop(w, lists[0], 6, until); err != nil {
					t.Fatalf("room %d, loop %d: %v", room, i, err)
				}
				w.Wait()
				if i == 0 && room == 1<<20 {
					source.rows = 0 // all others are here
				}
				if most := max(room, 60); len(kept.rows.slots) > most && room < 1<<20 {
					t.Errorf("room %d: %d rows are kept", room, len(kept.rows.slots))
				}
			}
			if room == 1<<20 && source.rows > 0 {
				t.Errorf("%d rows were asked for again", source.rows)
			}
		}
	}
}

// Rows that have not come, because the source failed or a loop ended first, are not taken for rows that are there. A window
// that opens while another one has the rows keeps none, and changes none.
func TestKeptHasNoRowsThatDidNotCome(t *testing.T) {
	batches, kept := batchesOf(50, keptBatches), &Kept{}
	gone := errors.New("the server is gone")
	source := &direct{fail: func(_ context.Context, call int) error { return map[bool]error{true: gone}[call == 3] }}
	open := func() *Window {
		return Open(t.Context(), Options{Source: source, Nodes: nodes, Own: onMachine{nil, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: keptBatches, Threads: 1, Kept: kept})
	}
	w := open()
	if err := loop(w, batches, keptBatches, keptBatches); !errors.Is(err, gone) {
		t.Fatalf("the loop ended with %v", err)
	}
	w.Wait()
	outer := open()
	first, err := outer.Ask(batches[0])
	if err != nil {
		t.Fatal(err)
	}
	inner := open()
	if err := loop(inner, batchesOf(51, keptBatches), 3, keptBatches); err != nil {
		t.Errorf("a loop within another: %v", err)
	}
	inner.Wait()
	got := make([]byte, len(batches[0])*rowBytes)
	if err := first.Gather(nil, got); err != nil || string(got) != string(rowsOf(batches[0])) {
		t.Errorf("a loop around another has wrong rows, or %v", err)
	}
	outer.Close()
	outer.Wait()
	w = open()
	if err := loop(w, batches, 3, keptBatches); err != nil {
		t.Error(err)
	}
	w.Wait()
}

// With room for the rows of all nodes, and none elsewhere, a batch reads them in one table; else it gathers them.
func TestKeptTable(t *testing.T) {
	cache, err := NewCache(t.Context(), &direct{}, []int32{1, 2, 3}, nodes, rowBytes, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want bool
	}{
		"room for all":         {Options{Nodes: nodes, Bytes: nodes * rowBytes, Kept: &Kept{}}, true},
		"room for all but one": {Options{Nodes: nodes, Bytes: nodes*rowBytes - 1, Kept: &Kept{}}, false},
		"nodes not known":      {Options{Bytes: 1 << 20, Kept: &Kept{}}, false},
		"cached rows":          {Options{Nodes: nodes, Bytes: 1 << 20, Kept: &Kept{}, Cache: cache}, false},
		"rows of its own":      {Options{Nodes: nodes, Bytes: 1 << 20, Kept: &Kept{}, Own: held{0, 3}}, false},
		"dropped":              {Options{Nodes: nodes, Bytes: 1 << 20}, false},
	} {
		o := c.o
		o.Source, o.RowBytes, o.Batches, o.Threads = &direct{}, rowBytes, 1, 1
		if o.Own == nil {
			o.Own = onMachine{nil, 2}
		}
		all := make([]int32, nodes)
		for v := range all {
			all[v] = int32(v)
		}
		w := Open(t.Context(), o)
		ticket, err := w.Ask(all)
		if err != nil {
			t.Fatal(err)
		}
		table, err := ticket.Table(nil)
		if err != nil || (table != nil) != c.want || c.want && string(table) != string(rowsOf(all)) {
			t.Errorf("%s: a table of %d bytes, %v", name, len(table), err)
		}
		w.Close()
		w.Wait()
	}
}

// The ranks of a machine keep rows together from loop to loop; each has what its window has room for.
func TestKeptOfAMachine(t *testing.T) {
	for _, world := range []int{1, 2, 4} {
		if testing.Short() && world > 2 {
			continue
		}
		for _, room := range []int{20, 1 << 20} {
			for _, inline := range []bool{false, true} {
				lists, until := keptLoops(world)
				memory, sources := shared(t), make([]*direct, world)
				for r, err := range ranks(t, world, func(comm collective.Comm) error {
					r, kept := comm.Rank(), &Kept{}
					sources[r] = &direct{}
					beside, err := comm.Split(collective.Site{Kind: "beside"})
					if err != nil {
						return err
					}
					for i, until := range until {
						if inline && until < keptBatches {
							continue // in training the sampler tells the others
						}
						if err := comm.Barrier(collective.Site{Kind: "loop"}); err != nil {
							return err
						}
						w := Open(context.Background(), Options{
							Source: sources[r], Own: onMachine{nil, world}, RowBytes: rowBytes, Bytes: int64(room * rowBytes), Batches: keptBatches, Inline: inline, Threads: 1, Kept: kept,
							Machine: &Machine{Comm: beside, Site: collective.Site{Kind: "machine"}, Ranks: []int{0, 1, 2, 3}[:world], Rows: memory, Nodes: nodes, Slots: slotsIn(memory), Got: gotIn(memory, world)},
						})
						if err := loop(w, lists[r], 6, until); err != nil {
							return fmt.Errorf("loop %d: %w", i, err)
						}
						w.Wait()
					}
					return nil
				}) {
					if err != nil {
						t.Errorf("%d ranks, room %d: rank %d: %v", world, room, r, err)
					}
				}
				asked := 0
				for _, s := range sources {
					asked += int(s.rows)
				}
				if all := distinct(lists...); room == 1<<20 && asked != all {
					t.Errorf("%d ranks asked for %d rows in all loops; there are %d", world, asked, all)
				}
			}
		}
	}
}
