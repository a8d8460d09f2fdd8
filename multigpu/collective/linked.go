package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Link carries messages between the ranks of a Comm that [NewLinked] makes, or between the machines of one that [NewMachines]
// makes: a transport, such as MPI, implements it.
type Link interface {
	Rank() int
	Size() int

	// Run performs exchanges one after another. It calls a step when the exchange of the step
	// before it is complete: all messages for this rank have arrived, and the memory of its own
	// messages is free. A step may run on any goroutine. Run returns the first error, of a step or
	// of the transport. One goroutine at a time calls Run.
	Run(steps ...Step) error

	// Split returns the link of a second channel of the same ranks, for another goroutine. It is
	// called at most once, and not collective. Abort aborts both channels.
	Split() Link

	// Abort makes Run return an error, now and later. Any goroutine may call it.
	Abort()

	// Close frees this rank's memory. No Run is under way.
	Close() error
}

// Step prepares an exchange: send[r] goes to rank r, and recv[r] is filled with what rank r sends,
// which has the same length. There is one of each for every rank, or none at all, or several, in the
// order in which they are sent: then message i is for rank i % Size(), or from it. A rank's own are
// ignored, and messages of length 0 are not sent.
type Step func() (send, recv [][]byte, err error)

// NewLinked returns a Comm over a Link, which it closes.
//
// Each collective begins with an exchange of headers, by which the ranks compare their sites; short
// messages travel with it. A sum is divided over the ranks by elements (reduce-scatter), and its
// parts are then gathered. For each maximal subtree of [ReduceTree]'s tree whose slots a rank holds,
// the rank sends one partial sum, so more virtual ranks need no more bytes.
func NewLinked(l Link) Comm { return newLinked(l, &atomic.Pointer[string]{}) }

func newLinked(l Link, reason *atomic.Pointer[string]) *linked {
	return &linked{
		turn: turn{rank: l.Rank()}, link: l, world: l.Size(), reason: reason,
		heads: make([]byte, l.Size()*linkHead), send: make([][]byte, l.Size()), recv: make([][]byte, l.Size()),
	}
}

// A rank first sends a header, whose last word is the length of the rank's data, and the data if it
// is short.
const (
	linkHead  = 2 * headerSize
	linkShort = linkHead - headerSize
)

var (
	_ Comm   = (*linked)(nil)
	_ Waiter = (*linked)(nil)
)

// linked is one rank of a run over a Link.
type linked struct {
	turn
	link    Link
	world   int
	heads   []byte // of all ranks
	split   atomic.Pointer[linked]
	isSplit bool
	reason  *atomic.Pointer[string] // why it was aborted
	site    atomic.Pointer[Site]    // of the collective under way
	waited  time.Duration
	freed   bool // link is closed

	send, recv [][]byte // of the steps
}

func (c *linked) Rank() int             { return c.rank }
func (c *linked) Size() int             { return c.world }
func (c *linked) Waited() time.Duration { return c.waited }

func (c *linked) Close() error {
	return c.turn.close(func() (err error) {
		if s := c.split.Load(); s != nil {
			err = s.Close() // it fails while a collective is under way there, and may be called again
		}
		if !c.freed {
			c.freed, c.err = true, ErrClosed
			err = errors.Join(err, c.link.Close())
		}
		return err
	})
}

func (c *linked) Abort(reason string) {
	c.reason.CompareAndSwap(nil, &reason)
	c.link.Abort()
}

func (c *linked) Aborted() (string, bool) { return text(c.reason) }

func (c *linked) Waiting() (Site, bool) {
	if s := c.site.Load(); s != nil {
		return *s, true
	}
	if split := c.split.Load(); split != nil {
		return split.Waiting()
	}
	return Site{}, false
}

// head is rank's part of heads.
func (c *linked) head(rank int) []byte {
	return c.heads[rank*linkHead : (rank+1)*linkHead : (rank+1)*linkHead]
}

// size is the length of the data of a rank, and short the data itself if it is short.
func (c *linked) size(rank int) int {
	return int(binary.LittleEndian.Uint64(c.head(rank)[headerMail:]))
}
func (c *linked) short(rank int) []byte { return c.head(rank)[headerSize:] }

// run is a collective: the ranks exchange and compare headers, then the steps follow. n and aux are
// the arguments that must be equal. size is the length of this rank's data, short its data if that
// is short.
func (c *linked) run(op int, s Site, n, aux, size int, short []byte, steps ...Step) error {
	if reason := c.reason.Load(); reason != nil {
		return &abortError{site: s, reason: *reason}
	}
	mine := c.head(c.rank)
	writeHeader(mine, op, s, n, aux)
	binary.LittleEndian.PutUint64(mine[headerMail:], uint64(size))
	copy(mine[headerSize:], short)
	c.site.Store(&s)
	defer c.site.Store(nil)
	start := time.Now()
	all := make([]Step, 0, len(steps)+2)
	all = append(all, c.exchangeHeads, func() (_, _ [][]byte, err error) {
		c.waited += time.Since(start)
		return nil, nil, c.compare()
	})
	err := c.link.Run(append(all, steps...)...)
	if reason := c.reason.Load(); err != nil && reason != nil {
		return &abortError{site: s, reason: *reason}
	}
	if _, ok := errors.AsType[*Mismatch](err); err != nil && !ok {
		return fmt.Errorf("collective: %v: %w", s, err)
	}
	return err
}

func (c *linked) exchangeHeads() (send, recv [][]byte, err error) {
	for r := range c.world {
		c.send[r], c.recv[r] = c.head(c.rank), c.head(r)
	}
	return c.send, c.recv, nil
}

// compare compares the headers of all ranks.
func (c *linked) compare() error {
	for r := 1; r < c.world; r++ {
		if first, other := c.head(0), c.head(r); string(compared(first)) != string(compared(other)) {
			return mismatch(r, first, other)
		}
	}
	return nil
}

func (c *linked) Barrier(s Site) (err error) {
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	return c.run(opBarrier, s, 0, 0, 0, nil)
}

func (c *linked) Split(s Site) (_ Comm, err error) {
	if err := checkSplit(s, c.isSplit, c.split.Load() != nil); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	if err := c.run(opSplit, s, 0, 0, 0, nil); err != nil {
		return nil, err
	}
	split := newLinked(c.link.Split(), c.reason)
	split.isSplit = true
	c.split.Store(split)
	return split, nil
}

func (c *linked) AllGather(s Site, mine []byte) (_ [][]byte, err error) {
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	return c.gather(opAllGather, s, 0, 0, mine)
}

// gather sends data that is short with the headers, and longer data to each rank in a second
// exchange.
func (c *linked) gather(op int, s Site, n, aux int, mine []byte) ([][]byte, error) {
	all := make([][]byte, c.world)
	err := c.run(op, s, n, aux, len(mine), mine, func() (send, recv [][]byte, err error) {
		for r := range all {
			size := c.size(r)
			c.send[r], c.recv[r], all[r] = nil, nil, make([]byte, size)
			if size <= linkShort {
				copy(all[r], c.short(r))
			} else {
				c.recv[r] = all[r]
			}
			if len(mine) > linkShort {
				c.send[r] = mine
			}
		}
		copy(all[c.rank], mine)
		return c.send, c.recv, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (c *linked) SumInt64(s Site, v []int64) (err error) {
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	all, err := c.gather(opSumInt64, s, len(v), 0, int64Bytes(v))
	if err != nil {
		return err
	}
	sumInt64(v, all)
	return nil
}

// AllToAll sends the lengths of all messages first: with the headers, or after them if there are
// many ranks.
func (c *linked) AllToAll(s Site, send [][]byte) (got [][]byte, err error) {
	if err := checkSend(s, send, c.world); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	sizes, theirs := make([]byte, 8*c.world), make([]byte, 8*c.world)
	for r, b := range send {
		binary.LittleEndian.PutUint64(sizes[8*r:], uint64(len(b)))
	}
	got = make([][]byte, c.world)
	err = c.run(opAllToAll, s, 0, 0, len(sizes), sizes, func() (_, _ [][]byte, err error) {
		if len(sizes) <= linkShort {
			for r := range c.world {
				copy(theirs[8*r:8*r+8], c.short(r)[8*c.rank:])
			}
			return nil, nil, nil
		}
		for r := range c.world {
			c.send[r], c.recv[r] = sizes[8*r:8*r+8], theirs[8*r:8*r+8]
		}
		return c.send, c.recv, nil
	}, func() (_, _ [][]byte, err error) {
		for r := range got {
			if r == c.rank {
				got[r] = clone(send[r])
			} else {
				got[r] = make([]byte, binary.LittleEndian.Uint64(theirs[8*r:]))
			}
		}
		return send, got, nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// Broadcast of much data divides it: the root sends each rank a part, and the ranks exchange their
// parts, so that the root sends the data twice and not once for each rank.
func (c *linked) Broadcast(s Site, root int, data []float32) (err error) {
	if err := checkRoot(s, root, c.world); err != nil {
		return err
	}
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	b := float32Bytes(data)
	if len(b) <= linkShort {
		var mine []byte
		if c.rank == root {
			mine = b
		}
		if err := c.run(opBroadcast, s, len(data), root, len(mine), mine); err != nil {
			return err
		}
		copy(b, c.short(root))
		return nil
	}
	part := func(r int) []byte {
		lo, hi := Share(len(data), r, c.world)
		return b[4*lo : 4*hi]
	}
	return c.run(opBroadcast, s, len(data), root, 0, nil, func() (_, _ [][]byte, err error) {
		for r := range c.world {
			c.send[r], c.recv[r] = nil, nil
			if c.rank == root {
				c.send[r] = part(r)
			}
		}
		if c.rank != root {
			c.recv[root] = part(c.rank)
		}
		return c.send, c.recv, nil
	}, func() (_, _ [][]byte, err error) {
		for r := range c.world { // the root has everything
			c.send[r], c.recv[r] = nil, nil
			if r != root {
				c.send[r] = part(c.rank)
			}
			if c.rank != root {
				c.recv[r] = part(r)
			}
		}
		return c.send, c.recv, nil
	})
}
