//go:build linux

package plane

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/multigpu/collective"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	nodes    = 300
	rowBytes = 120
)

// put writes the row of a node, which is a function of the node's id.
func put(dst []byte, v int32) {
	for i := range rowBytes / 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(v)*2654435761+uint32(i))
	}
}

func rowsOf(ids []int32) []byte {
	b := make([]byte, len(ids)*rowBytes)
	for i, v := range ids {
		put(b[i*rowBytes:], v)
	}
	return b
}

// held holds the rows of the nodes of one of several owners.
type held struct{ rank, world int }

func owner(v int32, world int) int { return int(v) * 7 % 31 % world }

func (h held) Has(v int32) bool { return v < nodes && owner(v, h.world) == h.rank }

func (h held) Gather(dst []byte, ids []int32) error {
	for i, v := range ids {
		if h.Has(v) {
			put(dst[i*rowBytes:], v)
		} else {
			dst[i*rowBytes] = 0xff
		}
	}
	return nil
}

// direct is the reference, which has all rows. fail, if set, can make a call fail.
type direct struct {
	mu    sync.Mutex
	calls int
	rows  int64
	fail  func(ctx context.Context, call int) error
}

func (d *direct) Rows(ctx context.Context, ids []int32, dst []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	d.rows += int64(len(ids))
	if d.fail != nil {
		if err := d.fail(ctx, d.calls); err != nil {
			return err
		}
	}
	for i, v := range ids {
		if i > 0 && v <= ids[i-1] {
			return fmt.Errorf("ids %d and %d do not ascend", ids[i-1], v)
		}
	}
	copy(dst, rowsOf(ids))
	return nil
}

// batchesOf returns batches of distinct nodes in random order, some of them empty.
func batchesOf(seed uint64, n int) [][]int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	all := make([][]int32, n)
	for i := range all {
		perm := r.Perm(nodes)
		for _, v := range perm[:r.IntN(60)] {
			all[i] = append(all[i], int32(v*v/nodes)) // makes small ids more frequent
		}
		slices.Sort(all[i])
		all[i] = slices.Compact(all[i])
		r.Shuffle(len(all[i]), func(a, b int) { all[i][a], all[i][b] = all[i][b], all[i][a] })
	}
	return all
}

// loop requests batches ahead and gathers batches up to the given number, as a training loop does.
func loop(w *Window, batches [][]int32, ahead, until int) error {
	tickets := make(chan *Ticket, ahead)
	failed := make(chan error, 1)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		defer close(tickets)
		for _, ids := range batches {
			t, err := w.Ask(ids)
			if err != nil {
				failed <- err
				return
			}
			select {
			case tickets <- t:
			case <-stop:
				return
			}
		}
	})
	defer asking.Wait()
	defer w.Close()
	defer close(stop)
	return gathered(tickets, failed, stop, batches[:until])
}

// gathered checks the rows of a loop's batches, whose tickets come from the goroutine that asks; after its error, tickets ends. Of every
// other batch it reads the rows in the window's memory, if they are in their places there.
func gathered(tickets <-chan *Ticket, failed <-chan error, stop <-chan struct{}, batches [][]int32) error {
	for i, ids := range batches {
		t, ok := <-tickets
		if !ok {
			return <-failed
		}
		got := make([]byte, len(ids)*rowBytes)
		var table []byte
		if i%2 == 0 {
			var err error
			if table, err = t.Table(stop); err != nil {
				return err
			}
		}
		for k, v := range ids {
			if table != nil {
				copy(got[k*rowBytes:(k+1)*rowBytes], table[int(v)*rowBytes:])
			}
		}
		if table == nil {
			if err := t.Gather(stop, got); err != nil {
				return err
			}
		}
		if !bytes.Equal(got, rowsOf(ids)) {
			return fmt.Errorf("batch %d has wrong rows", i)
		}
	}
	return nil
}

func hottest(h held, n int) []int32 {
	var ids []int32
	for v := int32(0); v < nodes && len(ids) < n; v++ {
		if !h.Has(v) {
			ids = append(ids, v)
		}
	}
	return ids
}

// Every row is right and counted once, in every mode.
func TestWindow(t *testing.T) {
	batches := batchesOf(1, 40)
	reads := 0
	for _, b := range batches {
		reads += len(b)
	}
	for _, cached := range []int{0, 20, nodes} {
		for _, room := range []int64{0, 50 * rowBytes, 1 << 20} {
			for _, inline := range []bool{false, true} {
				for _, ahead := range []int{0, 1, 7, 100} {
					own, counts := held{1, 3}, &Counts{}
					cache, err := NewCache(t.Context(), &direct{}, hottest(own, cached), nodes, rowBytes, int64(cached*rowBytes+5))
					if err != nil {
						t.Fatal(err)
					}
					source, known := &direct{}, nodes
					if inline { // rows are then found in a map
						known = 0
					}
					w := Open(t.Context(), Options{
						Source: source, Nodes: known, Own: own, Cache: cache, Counts: counts, RowBytes: rowBytes, Bytes: room, Batches: len(batches), Inline: inline, Threads: 2,
					})
					if err := loop(w, batches, ahead, len(batches)); err != nil {
						t.Fatalf("cache of %d, room %d, inline %v, %d ahead: %v", cached, room, inline, ahead, err)
					}
					w.Wait()
					c := counts.Rows()
					if c.Own+c.Cached+c.Window+c.Remote != int64(reads) || c.Remote != source.rows || cached == nodes && source.rows > 0 || cached == 0 && c.Cached > 0 {
						t.Errorf("cache of %d, room %d: the counts are %+v for %d reads; the source returned %d rows", cached, room, c, reads, source.rows)
					}
					if w.rows.needed != 0 {
						t.Errorf("%d rows remain in the window", w.rows.needed)
					}
					if most := max(room/rowBytes, 60); int64(len(w.rows.slots)) > (most+chunkRows-1)/chunkRows*chunkRows {
						t.Errorf("room %d: the window has grown to %d rows", room, len(w.rows.slots))
					}
				}
			}
		}
	}
}

// A row is requested once per window, as hotness.Trace.Windowed counts.
func TestWindowAsksOnce(t *testing.T) {
	batches := batchesOf(2, 50)
	own := held{0, 2}
	var trace hotness.Trace
	for _, b := range batches {
		var ids []int32
		for _, v := range b {
			if !own.Has(v) {
				ids = append(ids, v)
			}
		}
		slices.Sort(ids)
		trace = append(trace, ids)
	}
	cached := hottest(own, 10)
	for _, ahead := range []int{0, 1, 4, 50} {
		cache, err := NewCache(t.Context(), &direct{}, cached, nodes, rowBytes, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		source := &direct{}
		w := Open(t.Context(), Options{Source: source, Own: own, Cache: cache, RowBytes: rowBytes, Bytes: 1 << 20, Batches: len(batches), Threads: 1})
		var tickets []*Ticket
		for i := range batches {
			ticket, err := w.Ask(batches[i])
			if err != nil {
				t.Fatal(err)
			}
			if tickets = append(tickets, ticket); len(tickets) > ahead {
				if err := tickets[0].Gather(nil, make([]byte, len(tickets[0].ids)*rowBytes)); err != nil {
					t.Fatal(err)
				}
				tickets = tickets[1:]
			}
		}
		for _, ticket := range tickets {
			if err := ticket.Gather(nil, make([]byte, len(ticket.ids)*rowBytes)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Ask(nil); err == nil {
			t.Error("a batch beyond the loop's number of batches was accepted")
		}
		w.Close()
		w.Wait()
		if want := trace.Windowed(ahead, cached); source.rows != want {
			t.Errorf("%d batches ahead: %d rows requested, want %d", ahead, source.rows, want)
		}
	}
}

// The rows in the window never take more than its bytes, unless a single batch does.
func TestWindowIsBounded(t *testing.T) {
	batches := batchesOf(3, 60)
	const room = 80
	most := 0
	source := &direct{}
	w := Open(t.Context(), Options{Source: source, Own: held{0, 2}, RowBytes: rowBytes, Bytes: room * rowBytes, Batches: len(batches), Threads: 1})
	source.fail = func(context.Context, int) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		most = max(most, w.rows.needed)
		return nil
	}
	if err := loop(w, batches, len(batches), len(batches)); err != nil {
		t.Fatal(err)
	}
	w.Wait()
	if most > room || most < room/2 {
		t.Errorf("the window had %d rows, its limit is %d", most, room)
	}
}

// If a source fails, the loop ends with the source's error. A call of a source that never answers
// ends with the loop.
func TestSourceFails(t *testing.T) {
	batches := batchesOf(4, 20)
	for _, inline := range []bool{false, true} {
		source := &direct{fail: func(_ context.Context, call int) error {
			if call == 5 {
				return errors.New("the wire is cut")
			}
			return nil
		}}
		w := Open(t.Context(), Options{Source: source, Own: held{0, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: len(batches), Inline: inline})
		if err := loop(w, batches, 9, len(batches)); err == nil || !strings.Contains(err.Error(), "rows of features: the wire is cut") {
			t.Errorf("inline %v: error %v", inline, err)
		}
		w.Wait()
	}
	silent := &direct{fail: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}
	w := Open(t.Context(), Options{Source: silent, Own: held{0, 2}, RowBytes: rowBytes, Bytes: 1 << 20, Batches: len(batches)})
	here := func(b []int32) bool { // such a batch is ready at once
		return !slices.ContainsFunc(b, func(v int32) bool { return !(held{0, 2}).Has(v) })
	}
	batches = slices.DeleteFunc(batches, here)
	first, err := w.Ask(batches[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Ask(batches[1])
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if err := first.Gather(stop, make([]byte, len(batches[0])*rowBytes)); !errors.Is(err, ErrClosed) {
		t.Errorf("after stop: %v", err)
	}
	w.Close()
	w.Wait()
	for _, ticket := range []*Ticket{first, second} {
		if err := ticket.Gather(nil, make([]byte, len(ticket.ids)*rowBytes)); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := w.Ask(batches[2]); !errors.Is(err, ErrClosed) {
		t.Errorf("Ask after Close gave %v", err)
	}
	broken := &direct{fail: func(context.Context, int) error { return errors.New("the wire is cut") }}
	if _, err := NewCache(t.Context(), broken, []int32{1}, nodes, rowBytes, 1<<20); err == nil || !strings.Contains(err.Error(), "filling the cache of features: the wire is cut") {
		t.Errorf("cache: %v", err)
	}
	for _, ids := range [][]int32{{-1}, {nodes}, {3, 3}} {
		if _, err := NewCache(t.Context(), &direct{}, ids, nodes, rowBytes, 1<<20); err == nil {
			t.Errorf("a cache of the nodes %v gave no error", ids)
		}
	}
}

// ranks runs f for each rank, each in its own goroutine.
func ranks(t *testing.T, world int, f func(c collective.Comm) error) []error {
	t.Helper()
	s, err := collective.NewShared(world)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	errs := make([]error, world)
	var wg sync.WaitGroup
	for r := range world {
		c, err := collective.Open(s.Control, s.Data, r, world)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if errs[r] = f(c); errs[r] != nil {
				c.Abort(errs[r].Error())
			}
		})
		defer c.Close()
	}
	wg.Wait()
	return errs
}

func exchange(c collective.Comm) *Exchange {
	world := c.Size()
	return &Exchange{
		Comm: c, Site: collective.Site{Kind: "rows of features"}, Owner: func(v int32) int { return owner(v, world) },
		Own: held{c.Rank(), world}, RowBytes: rowBytes,
	}
}

// Ranks that exchange rows get the right ones in consecutive loops that all ranks leave at the same
// step, although the ranks have different numbers of batches in progress.
func TestExchange(t *testing.T) {
	for _, world := range []int{1, 2, 3} {
		for _, err := range ranks(t, world, func(c collective.Comm) error {
			beside, err := c.Split(collective.Site{Kind: "beside"})
			if err != nil {
				return err
			}
			x := exchange(beside)
			own := held{c.Rank(), world}
			cache, err := NewCache(context.Background(), x, hottest(own, 5*c.Rank()), nodes, rowBytes, 1<<20)
			if err != nil {
				return err
			}
			var last *Window
			for i, until := range []int{30, 11, 0, 29, 30} {
				if err := c.Barrier(collective.Site{Kind: "loop"}); err != nil { // all ranks have left the previous loop
					return err
				}
				if last != nil {
					last.Wait()
				}
				last = Open(context.Background(), Options{
					Source: x, Own: own, Cache: cache, RowBytes: rowBytes, Bytes: int64(rowBytes * (40 + 90*c.Rank())), Batches: 30, Threads: 1,
				})
				batches := batchesOf(uint64(10*i+c.Rank()), 30)
				if err := loop(last, batches, 1+4*c.Rank(), until); err != nil {
					return fmt.Errorf("loop %d: %w", i, err)
				}
			}
			last.Wait()
			return nil
		}) {
			if err != nil {
				t.Errorf("%d ranks: %v", world, err)
			}
		}
	}
}

// Ranks with different divisions, and malformed messages, cause errors.
func TestExchangeRefuses(t *testing.T) {
	errs := ranks(t, 2, func(c collective.Comm) error {
		x := exchange(c)
		if c.Rank() == 1 {
			x.Own = held{0, 3} // this rank holds other rows than rank 0 assumes
		}
		var ids []int32
		for v := range int32(nodes) {
			if owner(v, 2) != c.Rank() {
				ids = append(ids, v)
			}
		}
		return x.Rows(context.Background(), ids, make([]byte, len(ids)*rowBytes))
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "which it does not have") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	errs = ranks(t, 2, func(c collective.Comm) error {
		if c.Rank() == 1 {
			for range 2 {
				if _, err := c.AllToAll(collective.Site{Kind: "rows of features"}, [][]byte{[]byte("no request at all"), nil}); err != nil {
					return err
				}
			}
			return nil
		}
		return exchange(c).Rows(context.Background(), nil, nil)
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "rank 1 sent a request for rows of features that is damaged") {
		t.Error(errs[0])
	}
	errs = ranks(t, 1, func(c collective.Comm) error {
		return exchange(c).Rows(context.Background(), []int32{1}, make([]byte, rowBytes))
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "node 1 are on no other rank") {
		t.Error(errs[0])
	}
}
