// Package commtest is the conformance suite of package collective: every
// implementation of [collective.Comm] passes [Run], and in real processes each
// rank passes [Exercise].
package commtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// lengths are of vectors: none, one, about a cache line, above a block of the
// tree, and odd ones that no rank count divides.
var lengths = []int{0, 1, 31, 33, 4099}

// Exercise runs one rank through every collective and checks the results. All ranks of a run call
// it concurrently, and only once, because it splits c. It leaves c open and usable.
func Exercise(c collective.Comm) error {
	for _, f := range []func(collective.Comm) error{
		barriers, gathers, exchanges, sums, broadcasts, reducers, matrices, releases(600), splits,
	} {
		if err := f(c); err != nil {
			return fmt.Errorf("rank %d of %d: %w", c.Rank(), c.Size(), err)
		}
	}
	return nil
}

func site(kind string, step int) collective.Site {
	return collective.Site{Kind: kind, Epoch: 1, Step: step, At: "commtest.go:1"}
}

func barriers(c collective.Comm) error {
	for i := range 200 {
		if err := c.Barrier(site("barrier", i)); err != nil {
			return err
		}
	}
	return nil
}

// content holds the bytes of all messages, which begin at different places in it. The race detector watches each write of
// a byte, but a copy as a whole.
var content = sync.OnceValue(func() []byte {
	b := make([]byte, 1_010_000)
	const period = 4093
	for i := range period {
		b[i] = byte(i*5 + i*i>>8)
	}
	for n := period; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	return b
})

// message is what rank sends in a gather, for reading only: its length and bytes depend on both.
func message(rank, round int) []byte {
	n := [...]int{0, 1, 7, 1000, 64 << 10, 64<<10 + 1, 300_001}[(rank*3+round)%7]
	return content()[rank*31+round:][:n]
}

func gathers(c collective.Comm) error {
	for round := range 14 {
		all, err := c.AllGather(site("gather", round), bytes.Clone(message(c.Rank(), round)))
		if err != nil {
			return err
		}
		if len(all) != c.Size() {
			return fmt.Errorf("a gather gave %d messages", len(all))
		}
		for r, got := range all {
			if !bytes.Equal(got, message(r, round)) {
				return fmt.Errorf("round %d: the message of rank %d is not what it sent (%d bytes)", round, r, len(got))
			}
		}
		for _, got := range all {
			clear(got) // the result is the caller's: no other rank may see this
		}
	}
	return nil
}

// exchanges checks AllToAll: the lengths of the messages differ for every pair of ranks; in some
// rounds all messages are short, in some only one is long, and in one there are none.
func exchanges(c collective.Comm) error {
	var kept [][]byte
	for round := range 24 {
		send := make([][]byte, c.Size())
		for to := range send {
			send[to] = bytes.Clone(parcel(c.Rank(), to, round))
		}
		var got [][]byte
		var err error
		if round < 12 {
			got, err = c.AllToAll(site("exchange", round), send)
		} else {
			got, err = collective.AllToAllInto(c, site("exchange", round), send, kept)
			kept = got
		}
		if err != nil {
			return err
		}
		if len(got) != c.Size() {
			return fmt.Errorf("an all-to-all gave %d messages", len(got))
		}
		for r := range got {
			if !bytes.Equal(got[r], parcel(r, c.Rank(), round)) {
				return fmt.Errorf("all-to-all, round %d: the message of rank %d is not what it sent (%d bytes)", round, r, len(got[r]))
			}
		}
		for i := range got {
			clear(got[i]) // the caller owns the result and may overwrite the messages that it sent
			clear(send[i])
		}
	}
	return nil
}

// parcel returns the message of a rank to another in an all-to-all, for reading only.
func parcel(from, to, round int) []byte {
	n := 0
	switch round % 6 {
	case 0:
		n = [...]int{0, 1, 7, 1000}[(from+3*to)%4]
	case 1:
		n = [...]int{0, 1, 9001, 64<<10 + 1, 333}[(from*3+to+round)%5]
	case 2:
		if from == 0 {
			n = 1_000_003
		}
	case 3:
		n = 70_000*(to+1) + from
	case 4:
		n = 64 << 10
	}
	return content()[from*31+to*17+round:][:n]
}

func sums(c collective.Comm) error {
	for step, n := range append(lengths, 20_000) {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(i) - math.MaxInt32*int64(c.Rank())<<16
		}
		if err := c.SumInt64(site("sum", step), v); err != nil {
			return err
		}
		w := int64(c.Size())
		for i, got := range v {
			if want := w*int64(i) - math.MaxInt32*(w*(w-1)/2)<<16; got != want {
				return fmt.Errorf("sum of %d: element %d is %d, want %d", n, i, got, want)
			}
		}
	}
	return floatSums(c)
}

// floatSums checks that [collective.SumFloat64] adds in the order of ranks, and refuses other lengths.
func floatSums(c collective.Comm) error {
	value := func(rank, i int) float64 { return math.Ldexp(1/float64(3+rank+i), 20*(rank%3)) }
	for step, n := range lengths {
		v, want := make([]float64, n), make([]float64, n)
		for i := range v {
			v[i] = value(c.Rank(), i)
			for rank := range c.Size() {
				want[i] += value(rank, i)
			}
		}
		if err := collective.SumFloat64(c, site("sum of float64", step), v); err != nil {
			return err
		}
		if !slices.Equal(v, want) {
			return fmt.Errorf("sum of %d: %v, want %v", n, v, want)
		}
	}
	err := collective.SumFloat64(c, site("sum of different lengths", 0), make([]float64, 2+c.Rank()))
	if differ := c.Size() > 1; (err != nil) != differ {
		return fmt.Errorf("a sum of different lengths over %d ranks: %v", c.Size(), err)
	}
	return nil
}

func broadcasts(c collective.Comm) error {
	for root := range c.Size() {
		for step, n := range append(lengths, 50_000) {
			v := make([]float32, n)
			for i := range v {
				v[i] = value(c.Rank(), i)
			}
			if err := c.Broadcast(site("broadcast", step), root, v); err != nil {
				return err
			}
			for i := range v {
				if v[i] != value(root, i) {
					return fmt.Errorf("broadcast of %d from %d: element %d is %v, want %v", n, root, i, v[i], value(root, i))
				}
			}
		}
	}
	return nil
}

// value spreads over many exponents, so that the order of additions shows.
func value(slot, i int) float32 {
	h := uint32(slot*2654435761+i*40503) * 2246822519
	return float32(int32(h)) * scales[h>>28]
}

// scales are powers of two from 2^-40.
var scales = func() (s [16]float32) {
	for i := range s {
		s[i] = float32(math.Ldexp(1, i-40))
	}
	return s
}()

// Slots fills the slots that a reduction of 8 takes, as every division of them
// among ranks does.
func slots(n, count, step int) [][]float32 {
	s := make([][]float32, count)
	for k := range s {
		s[k] = make([]float32, n)
		for i := range s[k] {
			s[k][i] = value(k+step*100, i)
		}
	}
	return s
}

func reducers(c collective.Comm) error {
	for _, virtual := range []int{1, 2, 3, 8} {
		for _, n := range lengths {
			r, err := c.NewReducer(site("reducer", n), n, virtual)
			if err != nil {
				return err
			}
			for step := range 3 {
				all := slots(n, c.Size()*virtual, step)
				for v := range virtual {
					copy(r.Slot(v), all[c.Rank()*virtual+v])
				}
				got, err := r.Reduce(site("step", step))
				if err != nil {
					return err
				}
				want := collective.ReduceTree(all)
				if len(got) != len(want) {
					return fmt.Errorf("a sum of %d has %d elements", n, len(got))
				}
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						return fmt.Errorf("sum of %d slots of %d: element %d is %x, want %x",
							len(all), n, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
					}
				}
			}
			r.Release()
		}
	}
	return nil
}

func matrices(c collective.Comm) error {
	for round, rows := range lengths {
		m, err := c.NewMatrix(site("matrix", round), rows, 5)
		if err != nil {
			return err
		}
		if m.Rows() != rows || m.Cols() != 5 || len(m.Data()) != rows*5 {
			return fmt.Errorf("a matrix of %d rows has shape [%d, %d], %d values", rows, m.Rows(), m.Cols(), len(m.Data()))
		}
		lo, hi := collective.Share(rows, c.Rank(), c.Size())
		for i, x := range m.Data()[lo*5 : hi*5] {
			if x != 0 {
				return fmt.Errorf("a new matrix holds %v at %d", x, i)
			}
		}
		for i := lo * 5; i < hi*5; i++ {
			m.Data()[i] = value(round, i)
		}
		if err := m.Publish(site("publish", round), lo, hi); err != nil {
			return err
		}
		for i, x := range m.Data() {
			if x != value(round, i) {
				return fmt.Errorf("matrix of %d rows: value %d is %v after Publish, want %v", rows, i, x, value(round, i))
			}
		}
		if err := c.Barrier(site("read", round)); err != nil { // all have read: rows may be written
			return err
		}
		// Now the last rank writes all rows but the first, which rank 0 keeps.
		lo, hi = 0, 0
		if c.Rank() == c.Size()-1 {
			lo, hi = min(1, rows), rows
		}
		for i := lo * 5; i < hi*5; i++ {
			m.Data()[i] = value(round+100, i)
		}
		if err := m.Publish(site("publish again", round), lo, hi); err != nil {
			return err
		}
		for i, x := range m.Data() {
			want := value(round+100, i)
			if i < 5 {
				want = value(round, i)
			}
			if x != want {
				return fmt.Errorf("matrix of %d rows: value %d is %v after the second Publish, want %v", rows, i, x, want)
			}
		}
		m.Release()
	}
	return nil
}

// releases takes and gives back memory, the ranks at different times; in 600 rounds that is more than
// could ever be held at once.
func releases(rounds int) func(collective.Comm) error {
	return func(c collective.Comm) error { return releaseMany(c, rounds) }
}

func releaseMany(c collective.Comm, rounds int) error {
	keep, err := c.NewMatrix(site("keep", 0), 100, 1)
	if err != nil {
		return err
	}
	keep.Data()[c.Rank()] = float32(c.Rank() + 1)
	for i := range rounds {
		m, err := c.NewMatrix(site("many", i), 1+i%7*3000, 1)
		if err != nil {
			return err
		}
		for _, x := range m.Data() {
			if x != 0 {
				return fmt.Errorf("matrix %d, in memory used before, is not zero", i)
			}
		}
		if err := m.Publish(site("seen", i), 0, 0); err != nil {
			return err
		}
		m.Data()[0] = 7
		if c.Rank() == i%c.Size() {
			if err := c.Barrier(site("late", i)); err != nil {
				return err
			}
			m.Release()
			continue
		}
		m.Release()
		if err := c.Barrier(site("late", i)); err != nil {
			return err
		}
	}
	if err := keep.Publish(site("keep", 1), c.Rank(), c.Rank()+1); err != nil {
		return err
	}
	for r := range c.Size() {
		if keep.Data()[r] != float32(r+1) {
			return fmt.Errorf("a kept matrix lost the row of rank %d", r)
		}
	}
	keep.Release()
	return nil
}

// splits runs the Comm and the one split from it in two goroutines at the same time.
func splits(c collective.Comm) error {
	second, err := c.Split(site("split", 0))
	if err != nil {
		return err
	}
	if second.Rank() != c.Rank() || second.Size() != c.Size() {
		return fmt.Errorf("split gave rank %d of %d", second.Rank(), second.Size())
	}
	for name, twice := range map[string]collective.Comm{"a second split": c, "a split of a split": second} {
		if _, err := twice.Split(site("split", 1)); err == nil {
			return fmt.Errorf("%s: no error", name)
		}
	}
	if err := held(c, second); err != nil {
		return fmt.Errorf("beside a collective of the split that waits: %w", err)
	}
	other := make(chan error, 1)
	go func() {
		other <- inTurn(second, exchanges, matrices, releases(40), gathers)
	}()
	err = inTurn(c, sums, reducers, releases(40), exchanges)
	if err := errors.Join(err, <-other); err != nil {
		return err
	}
	if err := second.Close(); err != nil {
		return err
	}
	if err := second.Barrier(site("closed", 0)); !errors.Is(err, collective.ErrClosed) {
		return fmt.Errorf("a barrier of the closed split gave %v, want ErrClosed", err)
	}
	return c.Barrier(site("after the split", 0))
}

// held: collectives of c run while one of the split waits for its last rank, whose messages no rank takes yet.
func held(c, second collective.Comm) error {
	s := site("held", 0)
	ended := make(chan error, 1)
	wait := func() { ended <- second.Barrier(s) }
	last := c.Rank() == c.Size()-1
	if !last {
		go wait()
		if err := waitFor(second, s, ended); err != nil {
			return err
		}
	}
	if err := inTurn(c, barriers, sums); err != nil {
		return err
	}
	if last {
		wait()
	}
	return <-ended
}

func inTurn(c collective.Comm, fs ...func(collective.Comm) error) error {
	for _, f := range fs {
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// Large sums 10 M elements, twice.
func Large(c collective.Comm) error {
	const n = 10_000_000
	r, err := c.NewReducer(site("large", 0), n, 1)
	if err != nil {
		return err
	}
	defer r.Release()
	at := make([][]float32, c.Size())
	for k := range at {
		at[k] = make([]float32, 1)
	}
	for step := range 2 {
		for i, slot := 0, r.Slot(0); i < n; i++ {
			slot[i] = cheap(c.Rank(), step, i)
		}
		sum, err := r.Reduce(site("large", step))
		if err != nil {
			return err
		}
		if len(sum) != n {
			return fmt.Errorf("a sum of %d has %d elements", n, len(sum))
		}
		for i := 0; i < n; i += 1 + i%101 {
			for k := range at {
				at[k][0] = cheap(k, step, i)
			}
			if want := collective.ReduceTree(at)[0]; math.Float32bits(sum[i]) != math.Float32bits(want) {
				return fmt.Errorf("sum of %d: element %d is %v, want %v", n, i, sum[i], want)
			}
		}
	}
	return nil
}

// cheap is value for many elements: a random sign and mantissa, and exponents from 2^-8 to 2^7.
func cheap(slot, step, i int) float32 {
	h := (uint32(slot*7919+step*104729+i) + 1) * 2654435761
	h ^= h >> 15
	return math.Float32frombits(h&0x807fffff | (119+h>>23&15)<<23)
}

// Aborted runs one rank through an abort: the last rank does not join the collective, the others
// wait for it, and another goroutine of each ends the wait. Aborted leaves c open but unusable. A
// single rank does not wait.
func Aborted(c collective.Comm) error {
	const reason = "the memory of rank 3 is full"
	if _, ok := c.Waiting(); ok {
		return errors.New("a rank waits before any collective")
	}
	second, err := c.Split(site("split", 0))
	if errors.Is(err, collective.ErrAborted) { // of a rank that is ahead of this one
		return wantAbort(err, reason)
	}
	if err != nil {
		return err
	}
	s := collective.Site{Kind: "sampling", Epoch: 3, Step: 4, At: "sample.go:5"}
	if c.Rank() < c.Size()-1 {
		done := make(chan error, 1)
		go func() { done <- second.Barrier(s) }()
		err := waitFor(c, s, done)
		if err == nil { // it waits
			c.Abort(reason)
			err = <-done
		}
		if err := wantAbort(err, reason); err != nil {
			return fmt.Errorf("a barrier that waits: %w", err)
		}
	}
	c.Abort(reason)
	c.Abort("a later reason")
	for name, x := range map[string]collective.Comm{"": c, " of the split": second} {
		if got, ok := x.Aborted(); !ok || !strings.Contains(got, reason) {
			return fmt.Errorf("the reason%s is %q, %v", name, got, ok)
		}
	}
	for name, err := range map[string]error{
		"barrier":            c.Barrier(s),
		"sum":                c.SumInt64(s, []int64{1}),
		"barrier of a split": second.Barrier(s),
	} {
		if err := wantAbort(err, reason); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, ok := c.Waiting(); ok {
		return errors.New("a rank waits after its end")
	}
	return nil
}

// waitFor returns nil when the rank waits at s, or the error that ended the wait.
func waitFor(c collective.Comm, s collective.Site, done <-chan error) error {
	for {
		if at, ok := c.Waiting(); ok && at != s {
			return fmt.Errorf("a rank waits at %v, want %v", at, s)
		} else if ok {
			return nil
		}
		select {
		case err := <-done:
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

func wantAbort(err error, reason string) error {
	if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "later") {
		return fmt.Errorf("got %w, want ErrAborted with %q", err, reason)
	}
	return nil
}

// Run checks an implementation in runs of each number of ranks in worlds. open gives the ranks of a
// run of world, all in this process; Run closes them. Of more than four worlds, those of 4, 6 and 7
// ranks are left out unless GNB_SOAK is set, and all but 1 and 3 with -short. [Large] runs with
// three ranks, and with GNB_SOAK in each world.
func Run(t *testing.T, worlds []int, open func(t *testing.T, world int) []collective.Comm) {
	for _, world := range worlds {
		cover := []int{1, 2, 3, 5, 8}
		if testing.Short() {
			cover = []int{1, 3}
		}
		if len(worlds) > 4 && os.Getenv("GNB_SOAK") == "" && !slices.Contains(cover, world) {
			continue
		}
		t.Run(fmt.Sprintf("world %d", world), func(t *testing.T) {
			t.Run("exercise", func(t *testing.T) { each(t, open(t, world), Exercise) })
			t.Run("arguments", func(t *testing.T) { each(t, open(t, world), arguments) })
			t.Run("closed", func(t *testing.T) { each(t, open(t, world), closed) })
			t.Run("aborted", func(t *testing.T) { each(t, open(t, world), Aborted) })
			if !testing.Short() && (world == 3 || os.Getenv("GNB_SOAK") != "") {
				t.Run("large", func(t *testing.T) { each(t, open(t, world), Large) })
			}
			if world > 1 {
				t.Run("mismatch", func(t *testing.T) { mismatches(t, open, world) })
			}
			if 8%world == 0 {
				t.Run("division", func(t *testing.T) { division(t, open, world) })
			}
		})
	}
}

// each runs f on every rank at the same time and closes the ranks.
func each(t *testing.T, comms []collective.Comm, f func(collective.Comm) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			if err := f(c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

// arguments checks that arguments that are wrong on all ranks are errors before any rank waits.
func arguments(c collective.Comm) error {
	s := site("arguments", 0)
	if c.Rank() < 0 || c.Rank() >= c.Size() {
		return fmt.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	m, err := c.NewMatrix(s, 3, 2)
	if err != nil {
		return err
	}
	for name, f := range map[string]func() error{
		"no virtual slots": func() error { _, err := c.NewReducer(s, 5, 0); return err },
		"negative length":  func() error { _, err := c.NewReducer(s, -1, 1); return err },
		"negative rows":    func() error { _, err := c.NewMatrix(s, -1, 4); return err },
		"overflow":         func() error { _, err := c.NewMatrix(s, math.MaxInt32, math.MaxInt); return err },
		"no such root":     func() error { return c.Broadcast(s, c.Size(), nil) },
		"negative root":    func() error { return c.Broadcast(s, -1, nil) },
		"no messages":      func() error { _, err := c.AllToAll(s, nil); return err },
		"too many": func() error {
			_, err := c.AllToAll(s, make([][]byte, c.Size()+1))
			return err
		},
		"before the first row": func() error { return m.Publish(s, -1, 0) },
		"after the last row":   func() error { return m.Publish(s, 0, 4) },
		"backwards":            func() error { return m.Publish(s, 2, 1) },
	} {
		if f() == nil {
			return fmt.Errorf("%s: no error", name)
		}
	}
	return c.Barrier(s)
}

func closed(c collective.Comm) error {
	m, err := c.NewMatrix(site("m", 0), 3, 3)
	if err != nil {
		return err
	}
	r, err := c.NewReducer(site("r", 0), 3, 1)
	if err != nil {
		return err
	}
	r.Release()
	second, err := c.Split(site("s", 0))
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	c.Abort("it is closed already")
	if _, ok := second.Waiting(); ok {
		return errors.New("a closed communicator waits")
	}
	for name, err := range map[string]error{
		"barrier": c.Barrier(site("b", 0)),
		"sum":     c.SumInt64(site("b", 0), nil),
		"publish": m.Publish(site("b", 0), 0, 0),
		"split":   second.Barrier(site("b", 0)),
	} {
		if !errors.Is(err, collective.ErrClosed) {
			return fmt.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	return nil
}

// mismatches: one rank takes another way; every rank learns both places.
func mismatches(t *testing.T, open func(*testing.T, int) []collective.Comm, world int) {
	site := func(kind, at string, step int) collective.Site {
		return collective.Site{Kind: kind, Epoch: 2, Step: step, At: at}
	}
	reduce := func(c collective.Comm) error { return c.SumInt64(site("step", "loop.go:12", 17), []int64{1, 2}) }
	finish := collective.Site{Kind: "finish", Epoch: -1, Step: -1, At: "the end of the program"}
	odd := world - 1
	for _, tc := range []struct {
		name  string
		other func(c collective.Comm) error
		b     collective.Site
	}{
		{"left the loop", func(c collective.Comm) error { return c.Barrier(finish) }, finish},
		{"another line", func(c collective.Comm) error { return c.SumInt64(site("step", "loop.go:99", 17), []int64{1, 2}) }, site("step", "loop.go:99", 17)},
		{"another step", func(c collective.Comm) error { return c.SumInt64(site("step", "loop.go:12", 18), []int64{1, 2}) }, site("step", "loop.go:12", 18)},
		{"another length", func(c collective.Comm) error { return c.SumInt64(site("step", "loop.go:12", 17), []int64{1}) }, site("step", "loop.go:12", 17)},
		{"another operation", func(c collective.Comm) error {
			_, err := c.AllGather(site("step", "loop.go:12", 17), binary.LittleEndian.AppendUint64(nil, 1))
			return err
		}, site("step", "loop.go:12", 17)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			each(t, open(t, world), func(c collective.Comm) error {
				if err := c.Barrier(site("start", "loop.go:1", 0)); err != nil {
					return err
				}
				f := reduce
				if c.Rank() == odd {
					f = tc.other
				}
				err := f(c)
				m, ok := errors.AsType[*collective.Mismatch](err)
				if !ok {
					return fmt.Errorf("rank %d got %v, want a mismatch", c.Rank(), err)
				}
				if m.RankA != 0 || m.RankB != odd || m.A != site("step", "loop.go:12", 17) || m.B != tc.b {
					return fmt.Errorf("rank %d got %+v", c.Rank(), m)
				}
				if again := c.Barrier(site("after", "", 0)); !errors.Is(again, err) {
					return fmt.Errorf("after a mismatch a barrier gave %v", again)
				}
				return nil
			})
		})
	}
}

// division: 8 slots, divided in any way, give one sum.
func division(t *testing.T, open func(*testing.T, int) []collective.Comm, world int) {
	const n = 5003
	want := collective.ReduceTree(slots(n, 8, 0))
	each(t, open(t, world), func(c collective.Comm) error {
		virtual := 8 / c.Size()
		r, err := c.NewReducer(site("reducer", 0), n, virtual)
		if err != nil {
			return err
		}
		for v := range virtual {
			copy(r.Slot(v), slots(n, 8, 0)[c.Rank()*virtual+v])
		}
		got, err := r.Reduce(site("step", 0))
		if err != nil {
			return err
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				return fmt.Errorf("element %d differs in its bits", i)
			}
		}
		return nil
	})
}
