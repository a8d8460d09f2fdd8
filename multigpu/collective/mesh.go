package collective

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Machines describes a run over several machines, whose ranks are numbered machine by machine.
type Machines struct {
	Rank, World int
	// First holds the first rank of each machine, in ascending order from 0. A machine's ranks end
	// where those of the next begin.
	First []int
	// Local joins the ranks of this machine, numbered from 0: [Open]'s Comm, or that of [NewSingle]
	// on a machine with one rank.
	Local Comm
	// Conns are streams from the first rank of a machine to the first rank of each other machine, by
	// machine; nil at its own place. On all other ranks Conns is nil. A connection must take 20 KB
	// without waiting for its reader, as those of TCP and of Unix sockets do.
	Conns []net.Conn
	// SplitConns are as Conns, for the Comm that Split returns. Without them, Split of a run over
	// several machines is an error.
	SplitConns []net.Conn
	// Link, on the first rank of a machine, joins the first ranks in place of connections; its ranks are the machines.
	Link Link
}

// NewMachines returns the Comm of one rank of a run over several machines. It sends nothing and
// does not wait for other ranks. From then on the Comm owns Local, the connections and the Link:
// its Close closes them.
//
// The first rank of each machine exchanges with those of the others; the ranks of a machine exchange
// in memory. Results have the bits of a run on one machine. A sum takes two rounds of messages: a
// machine sends one sum for each maximal subtree of [ReduceTree]'s tree that it holds whole, and only
// of the elements that the receiver adds up, and then its own elements' sums. If that moves no fewer
// bytes, as between two machines, and these are at most 1 MiB, or if the sum is small, each machine adds up all elements, in one
// round.
// A matrix has a copy on each machine; Publish sends only the rows that were written.
//
// A connection that ends is a [*ConnError] at the rank that used it; all other ranks get its text with
// [ErrAborted]. A network that loses a machine without a word ends no connection: the supervisor that watches the
// machines then calls Abort.
//
// Numbers travel in the byte order of the machine, which must be the same on all.
func NewMachines(m Machines) (Comm, error) {
	mine, err := m.check()
	if err != nil {
		return nil, err
	}
	c := &mesh{
		turn: turn{rank: m.Rank}, world: m.World, first: append(m.First[:len(m.First):len(m.First)], m.World),
		me: mine, local: m.Local, spare: m.SplitConns, stop: make(chan struct{}), came: make([]uint64, len(m.First)),
	}
	c.root = c
	if c.leads() {
		c.link = m.Link
		if m.Link != nil {
			c.wire = newLinkWire(m.Link, c.group())
		} else {
			c.wire = newWire(mine, c.group(), m.Conns)
		}
		if len(m.First) > 1 && m.Local.Size() > 1 {
			c.watched = make(chan struct{})
			go c.watch()
		}
	}
	for _, conn := range append(m.Conns[:len(m.Conns):len(m.Conns)], m.SplitConns...) {
		if conn != nil {
			if err := conn.SetDeadline(time.Time{}); err != nil {
				return nil, fmt.Errorf("collective: a connection to %v is of no use: %w", conn.RemoteAddr(), err)
			}
		}
	}
	return c, nil
}

// check returns the machine of the rank.
func (m *Machines) check() (mine int, err error) {
	if m.Rank < 0 || m.Rank >= m.World {
		return 0, fmt.Errorf("collective: rank %d does not exist in a run of %d", m.Rank, m.World)
	}
	if len(m.First) == 0 || m.First[0] != 0 {
		return 0, fmt.Errorf("collective: the first ranks of machines are %v; they must begin with 0", m.First)
	}
	for i, f := range m.First {
		if i > 0 && f <= m.First[i-1] || f >= m.World {
			return 0, fmt.Errorf("collective: the first ranks of machines are %v; they must ascend and lie below %d", m.First, m.World)
		}
		if f <= m.Rank {
			mine = i
		}
	}
	end := m.World
	if mine+1 < len(m.First) {
		end = m.First[mine+1]
	}
	if m.Local == nil || m.Local.Rank() != m.Rank-m.First[mine] || m.Local.Size() != end-m.First[mine] {
		return 0, fmt.Errorf("collective: rank %d needs a local communicator as rank %d of %d", m.Rank, m.Rank-m.First[mine], end-m.First[mine])
	}
	if l := m.Link; l != nil {
		switch {
		case m.Rank != m.First[mine]:
			return 0, fmt.Errorf("collective: rank %d has a Link, but is not the first of its machine", m.Rank)
		case m.Conns != nil || m.SplitConns != nil:
			return 0, fmt.Errorf("collective: rank %d has a Link and connections", m.Rank)
		case l.Rank() != mine || l.Size() != len(m.First):
			return 0, fmt.Errorf("collective: rank %d has a Link as machine %d of %d, want %d of %d", m.Rank, l.Rank(), l.Size(), mine, len(m.First))
		}
		return mine, nil
	}
	for name, conns := range map[string][]net.Conn{"Conns": m.Conns, "SplitConns": m.SplitConns} {
		switch {
		case conns == nil && (m.Rank != m.First[mine] || name == "SplitConns" || len(m.First) == 1):
			continue
		case m.Rank != m.First[mine]:
			return 0, fmt.Errorf("collective: rank %d has %s, but is not the first of its machine", m.Rank, name)
		case len(conns) != len(m.First):
			return 0, fmt.Errorf("collective: rank %d has %d %s; there must be one for each of %d machines", m.Rank, len(conns), name, len(m.First))
		}
		for i, c := range conns {
			if (c == nil) != (i == mine) {
				return 0, fmt.Errorf("collective: %s of rank %d: there must be a connection to each machine but its own, %d", name, m.Rank, mine)
			}
		}
	}
	return mine, nil
}

var (
	_ Comm   = (*mesh)(nil)
	_ Waiter = (*mesh)(nil)
)

// mesh is one rank of a run over machines.
type mesh struct {
	turn
	world int
	first []int // first ranks of machines, and world
	me    int   // this rank's machine
	local Comm
	wire  carrier // on the first rank of a machine, else nil
	spare []net.Conn
	link  Link // of wire, if it has one

	root   *mesh // itself, or the Comm that it was split from
	split  atomic.Pointer[mesh]
	at     atomic.Pointer[Site]   // where this rank waits
	reason atomic.Pointer[string] // of the root's abort

	came          []uint64      // the size of the largest message of AllToAll that each machine has sent
	waited        time.Duration // at the first rank: for other machines
	stop, watched chan struct{}
	stopOnce      sync.Once
}

func (c *mesh) Rank() int { return c.rank }
func (c *mesh) Size() int { return c.world }

func (c *mesh) leads() bool { return c.rank == c.first[c.me] }

// count is the number of ranks of machine m.
func (c *mesh) count(m int) int { return c.first[m+1] - c.first[m] }

func (c *mesh) machines() int { return len(c.first) - 1 }

// group is a digest of the division of ranks over machines.
func (c *mesh) group() uint64 {
	h := sha256.New()
	for _, f := range c.first {
		_ = binary.Write(h, binary.LittleEndian, int64(f)) // a hash takes everything
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// Waited includes the time in which the first rank of the machine exchanges with other machines,
// for the machine's other ranks. See [Waiter].
func (c *mesh) Waited() time.Duration {
	t := c.waited
	if c.wire != nil {
		t += c.wire.waited()
	}
	if w, ok := c.local.(Waiter); ok {
		t += w.Waited()
	}
	return t
}

func (c *mesh) Waiting() (Site, bool) {
	if s := c.at.Load(); s != nil {
		return *s, true
	}
	if split := c.split.Load(); split != nil {
		return split.Waiting()
	}
	return Site{}, false
}

func (c *mesh) Aborted() (string, bool) {
	if reason := c.root.reason.Load(); reason != nil {
		return *reason, true
	}
	return c.root.local.Aborted()
}

func (c *mesh) Abort(reason string) {
	r := c.root
	if !r.reason.CompareAndSwap(nil, &reason) {
		return
	}
	r.local.Abort(reason)
	for _, x := range []*mesh{r, r.split.Load()} {
		if x != nil && x.wire != nil {
			x.wire.abort(reason)
		}
	}
}

// watch ends this rank's waits for other machines when another rank of its own machine has aborted.
func (c *mesh) watch() {
	defer close(c.watched)
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
		}
		if reason, ok := c.local.Aborted(); ok {
			c.Abort(reason)
			return
		}
	}
}

// Close ends the connections and the watch even if the split Comm is still in a collective; then it is an
// error, and another Close frees the rest.
func (c *mesh) Close() error {
	return c.turn.close(func() error {
		var errs []error
		split := c.split.Load()
		if split != nil {
			if err := split.Close(); err != nil {
				errs = append(errs, err)
				if split.wire != nil {
					errs = append(errs, split.wire.close())
				}
			}
		}
		if c.watched != nil {
			c.stopOnce.Do(func() { close(c.stop) })
			<-c.watched
		}
		if c.wire != nil {
			errs = append(errs, c.wire.close())
		}
		if c.root == c {
			errs = append(errs, c.local.Close())
			if split == nil {
				for _, conn := range c.spare {
					if conn == nil {
						continue
					}
					if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
						errs = append(errs, err)
					}
				}
			}
		}
		return errors.Join(errs...)
	})
}

func (c *mesh) Split(s Site) (Comm, error) {
	if err := checkSplit(s, c.root != c, c.split.Load() != nil); err != nil {
		return nil, err
	}
	if c.leads() && c.spare == nil && c.link == nil && c.machines() > 1 {
		return nil, fmt.Errorf("collective: a split at %v: the run was made without connections for it (Machines.SplitConns)", s)
	}
	x := &mesh{turn: turn{rank: c.rank}, world: c.world, first: c.first, me: c.me, root: c, came: make([]uint64, c.machines())}
	_, err := c.run(s, call{op: opSplit, finish: func() (err error) {
		x.local, err = c.local.Split(within)
		return err
	}})
	if err != nil {
		return nil, err
	}
	if c.leads() && c.link != nil {
		x.wire = newLinkWire(c.link.Split(), c.group())
	} else if c.leads() {
		x.wire = newWire(c.me, c.group(), c.spare)
	}
	c.split.Store(x)
	if reason := c.reason.Load(); reason != nil && x.wire != nil { // Abort may not have seen it
		x.wire.abort(*reason)
	}
	return x, nil
}

// within is the site of exchanges within a machine: the ranks' own sites travel with the data, so
// that a mismatch names ranks of the whole run.
var within = Site{Kind: "exchange within a machine", Epoch: -1, Step: -1}

// call is one collective. Fields that are nil do nothing.
type call struct {
	op, n, aux int
	mine       []byte // this rank's message to its machine
	// local runs on every rank after all ranks of the machine have entered the collective; given
	// holds their messages.
	local func(given [][]byte) error
	// body returns the message of the first rank to machine m.
	body func(given [][]byte, m int) [][]byte
	// take reads the message of machine m, or into has the memory for its pieces; if both are nil,
	// no message may arrive.
	take taker
	into func(m int) [][]byte
	// result runs on the first rank after the exchange, and returns what all ranks of its machine get.
	result func(given [][]byte) ([][]byte, error)
	// finish runs on every rank at the end.
	finish func() error
}

// run is a collective: the ranks of a machine give their headers and data to its first rank, the
// first ranks exchange both, and each hands the result to its machine. It returns the result.
func (c *mesh) run(s Site, k call) (result [][]byte, err error) {
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(s, &err)
	if reason := c.root.reason.Load(); reason != nil {
		return nil, &abortError{site: s, reason: *reason}
	}
	c.at.Store(&s)
	h := make([]byte, headerSize)
	writeHeader(h, k.op, s, k.n, k.aux)
	mine := headers{first: compared(h)}
	given := [][]byte{k.mine}
	if c.count(c.me) > 1 {
		if given, err = c.gather(&mine, k.mine); err != nil {
			return nil, err
		}
	}
	if k.local != nil && mine.odd == 0 {
		if err := k.local(given); err != nil {
			return nil, err
		}
	}
	var wrong *difference
	if c.leads() {
		wrong, err = c.across(s, k, &mine, given)
		if err == nil && wrong == nil && k.result != nil {
			result, err = k.result(given)
		}
		if err != nil {
			return nil, err
		}
	}
	if c.count(c.me) > 1 {
		if result, wrong, err = c.hand(result, wrong); err != nil {
			return nil, err
		}
	}
	if wrong != nil {
		return nil, wrong.mismatch()
	}
	if k.finish != nil {
		err = k.finish()
	}
	return result, err
}

// end makes a failure that other ranks cannot see known to them.
func (c *mesh) end(s Site, err *error) {
	if *err != nil && c.err == nil && !c.closed {
		_, differs := errors.AsType[*Mismatch](*err)
		reason := c.root.reason.Load()
		a, isAbort := errors.AsType[*abortError](*err)
		switch {
		case differs:
		case reason != nil: // the error is a consequence
			*err = &abortError{site: s, reason: *reason}
		case isAbort:
			c.Abort(a.reason)
			*err = &abortError{site: s, reason: a.reason}
		default:
			c.Abort((*err).Error())
		}
	}
	c.at.Store(nil)
	c.turn.end(err)
}

// headers holds the headers of a machine: of its first rank and, if odd > 0, of the first rank that
// differs.
type headers struct {
	first []byte
	odd   int // the rank within the machine
	other []byte
}

func (h *headers) encode() []byte {
	return joined(packed([][]byte{h.first, binary.LittleEndian.AppendUint32(nil, uint32(h.odd)), h.other}))
}

func decodeHeaders(b []byte) (*headers, error) {
	m, err := unpack(b, 3)
	if err != nil {
		return nil, err
	}
	if len(m[0]) > headerSize || len(m[1]) != 4 || len(m[2]) > headerSize {
		return nil, errNoFrame
	}
	return &headers{first: m[0], odd: int(binary.LittleEndian.Uint32(m[1])), other: m[2]}, nil
}

// gather gives this rank's header and data to the ranks of its machine.
func (c *mesh) gather(mine *headers, data []byte) (given [][]byte, err error) {
	all, err := c.local.AllGather(within, joined(packed([][]byte{mine.first, data})))
	if err != nil {
		return nil, err
	}
	given = make([][]byte, len(all))
	for r, b := range all {
		m, err := unpack(b, 2)
		if err != nil {
			return nil, fmt.Errorf("collective: from rank %d: %w", c.first[c.me]+r, err)
		}
		given[r] = m[1]
		if r == 0 {
			mine.first = m[0]
		} else if mine.odd == 0 && !bytes.Equal(m[0], mine.first) {
			mine.odd, mine.other = r, m[0]
		}
	}
	return given, nil
}

// difference is what ranks 0 and rank called.
type difference struct {
	rank         int
	first, other []byte
}

func (d *difference) mismatch() *Mismatch {
	full := func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, headerSize)...) }
	return mismatch(d.rank, full(d.first), full(d.other))
}

// across exchanges headers and bodies with the first ranks of the other machines.
func (c *mesh) across(s Site, k call, mine *headers, given [][]byte) (*difference, error) {
	all := make([]*headers, c.machines())
	all[c.me] = mine
	r := round{kind: frameEnter, head: mine.encode(), take: k.take, into: k.into}
	if k.body != nil && mine.odd == 0 {
		r.body = func(m int) [][]byte { return k.body(given, m) }
	}
	r.meet = func(m int, head []byte) error {
		h, err := decodeHeaders(head)
		if err != nil {
			return err
		}
		all[m] = h
		if h.odd > 0 || mine.odd > 0 || !bytes.Equal(h.first, mine.first) {
			return errDiffers
		}
		return nil
	}
	err := c.wire.run(r)
	if err != nil && !errors.Is(err, errDiffers) {
		return nil, c.connError(s, err)
	}
	for m, h := range all {
		if !bytes.Equal(h.first, all[0].first) {
			return &difference{rank: c.first[m], first: all[0].first, other: h.first}, nil
		}
		if h.odd > 0 {
			return &difference{rank: c.first[m] + h.odd, first: all[0].first, other: h.other}, nil
		}
	}
	return nil, nil
}

// connError names the ranks at the other end of the connection that failed.
func (c *mesh) connError(s Site, err error) error {
	if a, ok := errors.AsType[*aborted](err); ok {
		return &abortError{site: s, reason: a.reason}
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return fmt.Errorf("collective: %v: %w", s, err)
	}
	addr := c.wire.address(f.machine)
	if addr == "" {
		return fmt.Errorf("collective: %v: from rank %d: %w", s, c.first[f.machine], f.err)
	}
	return &ConnError{At: s, Rank: c.rank, FirstRank: c.first[f.machine], LastRank: c.first[f.machine+1] - 1, Addr: addr, Err: f.err}
}

// hand gives the first rank's result, or the difference that it found, to all ranks of its machine.
func (c *mesh) hand(result [][]byte, wrong *difference) ([][]byte, *difference, error) {
	var b []byte
	if c.leads() {
		state := binary.LittleEndian.AppendUint32(nil, uint32(len(result)))
		if wrong != nil {
			state = binary.LittleEndian.AppendUint32(nil, uint32(wrong.rank)|differs)
			result = [][]byte{wrong.first, wrong.other}
		}
		b = append(state, joined(packed(result))...)
	}
	all, err := c.local.AllGather(within, b)
	if err != nil {
		return nil, nil, err
	}
	state := binary.LittleEndian.Uint32(all[0])
	if state&differs != 0 {
		m, err := unpack(all[0][4:], 2)
		if err != nil {
			return nil, nil, err
		}
		return nil, &difference{rank: int(state &^ differs), first: m[0], other: m[1]}, nil
	}
	result, err = unpack(all[0][4:], int(state))
	return result, nil, err
}

// differs marks the state that a machine's first rank hands out as a difference.
const differs = 1 << 31
