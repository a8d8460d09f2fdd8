package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// traceOf is what batches read that this rank does not have.
func traceOf(own held, batches [][]int32) (t hotness.Trace) {
	for _, b := range batches {
		ids := slices.DeleteFunc(slices.Clone(b), own.Has)
		slices.Sort(ids)
		t = append(t, ids)
	}
	return t
}

func poolOf(t testing.TB, s Source, begin []int32, prior []float32, limit int) *Pool {
	t.Helper()
	cache, err := NewCache(t.Context(), s, begin, nodes, rowBytes, int64(limit*rowBytes))
	if err != nil {
		t.Fatal(err)
	}
	return NewPool(cache, prior, int64(limit*rowBytes))
}

// priors are made of few values, so that some are equal.
func priors() []float32 {
	p := make([]float32, nodes)
	for v := range p {
		p[v] = float32(v * 13 % 7)
	}
	return p
}

// A window that replaces rows asks for those that the simulation misses, whatever the prior, the number of known batches
// and the room, and every row is right.
func TestPoolMissesAreTheSimulations(t *testing.T) {
	own := held{0, 2}
	batches := batchesOf(7, 60)
	trace := traceOf(own, batches)
	for _, limit := range []int{0, 1, 20, 60, nodes} {
		for _, known := range []int{1, 3, 8, 100} {
			for _, prior := range [][]float32{nil, priors()} {
				for _, bytes := range []int64{1, 1 << 20} {
					begin := hottest(own, min(limit, 25))
					p := poolOf(t, &direct{}, begin, prior, limit)
					var counts Counts
					source := &direct{}
					w := Open(t.Context(), Options{Source: source, Own: own, Pool: p, Known: known, Counts: &counts, RowBytes: rowBytes, Bytes: bytes, Batches: len(batches), Threads: 1})
					if err := loop(w, batches, min(known, len(batches))+3, len(batches)); err != nil {
						t.Fatalf("%d rows, %d known: %v", limit, known, err)
					}
					w.Wait()
					want := trace.Belady(limit, known, prior, begin)
					got := counts.Rows()
					if source.rows != want || got.Remote != want || got.Cached != trace.Rows()-want || got.Window != 0 {
						t.Errorf("%d rows, %d known batches, prior %v, %d bytes: %d rows requested and %+v counted, want %d", limit, known, prior != nil, bytes, source.rows, got, want)
					}
					if !p.Settle() || p.Rows() > limit {
						t.Errorf("the pool holds %d rows, its limit is %d", p.Rows(), limit)
					}
					if used := len(p.chunks)*chunkRows - len(p.free); used != p.Rows() {
						t.Errorf("%d slots are used for %d rows", used, p.Rows())
					}
				}
			}
		}
	}
}

// A pool keeps its rows from loop to loop, also if a loop is left early: rows that have not come are not in it.
func TestPoolAfterLoops(t *testing.T) {
	own := held{1, 2}
	p := poolOf(t, &direct{}, hottest(own, 30), priors(), 40)
	for i, until := range []int{30, 0, 3, 17, 30} {
		batches := batchesOf(uint64(40+i), 30)
		w := Open(t.Context(), Options{Source: &direct{}, Own: own, Pool: p, Known: 4, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 30, Threads: 1})
		if p.Settle() {
			t.Fatal("the pool settles while a window is open")
		}
		if err := loop(w, batches, 7, until); err != nil {
			t.Fatal(err)
		}
		if !p.Settle() {
			t.Fatal("the pool does not settle after a loop")
		}
		if used := len(p.chunks)*chunkRows - len(p.free); used != p.Rows() || p.Rows() > 40+7*60 {
			t.Errorf("loop %d: %d slots are used for %d rows", i, used, p.Rows())
		}
		for v := range int32(nodes) {
			if row := p.Row(v); row != nil && !bytes.Equal(row, rowsOf([]int32{v})) {
				t.Fatalf("loop %d: the pool has a wrong row of node %d", i, v)
			}
		}
		// A window that only reads the pool finds these rows and changes none.
		var counts Counts
		r := Open(t.Context(), Options{Source: &direct{}, Own: own, Pool: p, Counts: &counts, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 30, Threads: 1})
		before := p.Rows()
		if err := loop(r, batches, 2, 30); err != nil {
			t.Fatal(err)
		}
		r.Wait()
		if p.Rows() != before || counts.Rows().Cached == 0 {
			t.Errorf("loop %d: a reading window changes %d rows to %d, and finds %d", i, before, p.Rows(), counts.Rows().Cached)
		}
	}
}

// A source that fails ends all batches, those without slots too.
func TestPoolSourceFails(t *testing.T) {
	own := held{0, 2}
	broken := errors.New("the wire is cut")
	p := poolOf(t, &direct{}, nil, nil, 40)
	w := Open(t.Context(), Options{
		Source: &direct{fail: func(_ context.Context, call int) error {
			if call > 3 {
				return broken
			}
			return nil
		}}, Own: own, Pool: p, Known: 4, RowBytes: rowBytes, Bytes: 1 << 20, Batches: 30, Threads: 1,
	})
	if err := loop(w, batchesOf(5, 30), 7, 30); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	w.Wait()
	p.Settle()
	for v := range int32(nodes) {
		if row := p.Row(v); row != nil && !bytes.Equal(row, rowsOf([]int32{v})) {
			t.Fatalf("the pool has a wrong row of node %d", v)
		}
	}
}

// Ranks that exchange rows replace those of their own pools, in consecutive loops that all ranks leave at the same step,
// with a stream of exchanges and without one.
func TestPoolExchange(t *testing.T) {
	for _, world := range []int{1, 2, 3} {
		for _, inline := range []bool{false, true} {
			misses := make([]int64, world)
			for _, err := range ranks(t, world, func(c collective.Comm) error {
				beside, err := c.Split(collective.Site{Kind: "beside"})
				if err != nil {
					return err
				}
				x := exchange(beside)
				own := held{c.Rank(), world}
				begin := hottest(own, 5*c.Rank())
				cache, err := NewCache(context.Background(), x, begin, nodes, rowBytes, 1<<20)
				if err != nil {
					return err
				}
				p := NewPool(cache, priors(), int64(40*rowBytes))
				untils := []int{30, 11, 0, 29, 30}
				if inline {
					untils = []int{30, 30} // leaving is the sampler's part
				}
				var last *Window
				for i, until := range untils {
					if err := c.Barrier(collective.Site{Kind: "loop"}); err != nil { // all ranks have left the previous loop
						return err
					}
					if last != nil {
						last.Wait()
					}
					var counts Counts
					last = Open(context.Background(), Options{
						Source: x, Own: own, Pool: p, Known: 5, Counts: &counts, RowBytes: rowBytes, Bytes: int64(rowBytes * (40 + 90*c.Rank())), Batches: 30, Inline: inline, Threads: 1,
					})
					batches := batchesOf(uint64(10*i+c.Rank()), 30)
					if err := loop(last, batches, 8+4*c.Rank(), until); err != nil {
						return fmt.Errorf("loop %d: %w", i, err)
					}
					if i == 0 {
						misses[c.Rank()] = counts.Rows().Remote
						if want := traceOf(own, batches).Belady(40, 5, priors(), begin); want != misses[c.Rank()] {
							return fmt.Errorf("%d rows were asked for, want %d", misses[c.Rank()], want)
						}
					}
				}
				last.Wait()
				return nil
			}) {
				if err != nil {
					t.Errorf("%d ranks, inline %v: %v", world, inline, err)
				}
			}
		}
	}
}
