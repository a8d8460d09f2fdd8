package collective

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/parallel"
)

var (
	_ Comm   = (*shm)(nil)
	_ Waiter = (*shm)(nil)
)

// shm is one rank of a run over shared memory.
type shm struct {
	turn
	*mapping
	channel  int           // of the control file: 0, or 1 for a Comm that came from Split
	split    *shm          // this rank's other channel, if it has been made
	seq      int           // collectives so far; its low bit chooses header and mailbox
	spin     int           // polls before a rank sleeps
	spinLong time.Duration // a rank polls at least so long
	regions  map[*region]struct{}
	exchange *region // of AllToAll: kept, because new shared memory is slow to fill
	room     int     // bytes of a rank's part of it
	waited   time.Duration
}

// mapping holds the state that the two channels of a rank share.
type mapping struct {
	world  int
	data   *os.File
	ctl    []byte
	life   sync.RWMutex // of ctl, for methods that any goroutine may call: Close unmaps it
	taking sync.Mutex   // of the region table, which both channels of rank 0 write
}

// Open joins a run as rank of world over the files that [NewShared] made,
// inherited or opened again. It keeps data and does not close the files.
func Open(control, data *os.File, rank, world int) (Comm, error) {
	if rank < 0 || rank >= world || world > MaxRanks {
		return nil, fmt.Errorf("collective: rank %d does not exist in a run of %d", rank, world)
	}
	st, err := control.Stat()
	if err != nil {
		return nil, fmt.Errorf("collective: opening the control file: %w", err)
	}
	if st.Size() != controlSize(world) {
		return nil, fmt.Errorf("collective: the control file has %d bytes; a run of %d ranks has %d", st.Size(), world, controlSize(world))
	}
	ctl, err := mapFile(control, 0, controlSize(world))
	if err != nil {
		return nil, err
	}
	if *(*uint64)(unsafe.Pointer(&ctl[0])) != ctlMagic || int(atomic.LoadUint32(word(ctl, ctlWorld))) != world {
		return nil, fail(fmt.Errorf("collective: the control file is not that of a run of %d ranks", world), unix.Munmap(ctl))
	}
	return newChannel(&mapping{world: world, data: data, ctl: ctl}, rank, 0), nil
}

func newChannel(m *mapping, rank, channel int) *shm {
	polls, long := spins(m.world, channel)
	return &shm{
		turn: turn{rank: rank}, mapping: m, channel: channel,
		spin: polls, spinLong: long, regions: map[*region]struct{}{},
	}
}

// Waited is the time that this rank has waited in collectives for others; see
// [Waiter].
func (c *shm) Waited() time.Duration { return c.waited }

func (c *shm) Rank() int { return c.rank }
func (c *shm) Size() int { return c.world }

func (c *shm) Close() error {
	return c.turn.close(func() error {
		if c.split != nil {
			if err := c.split.Close(); err != nil {
				return err
			}
		}
		for r := range c.regions {
			c.release(r)
		}
		if c.channel > 0 {
			return nil
		}
		c.life.Lock()
		defer c.life.Unlock()
		err := unix.Munmap(c.ctl)
		c.ctl = nil
		return err
	})
}

func (c *shm) Split(s Site) (_ Comm, err error) {
	if err := checkSplit(s, c.channel > 0, c.split != nil); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	if _, err := c.enter(opSplit, s, 0, 0); err != nil {
		return nil, err
	}
	c.life.Lock() // Waiting reads split
	defer c.life.Unlock()
	c.split = newChannel(c.mapping, c.rank, 1)
	return c.split, nil
}

func (c *shm) Abort(reason string) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.ctl != nil {
		abort(c.ctl, reason)
	}
}

func (c *shm) Aborted() (string, bool) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.ctl == nil || atomic.LoadUint32(word(c.ctl, ctlAbort)) == 0 {
		return "", false
	}
	return abortText(c.ctl), true
}

func (c *shm) Waiting() (Site, bool) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.ctl == nil {
		return Site{}, false
	}
	if s, ok := waiting(c.ctl, c.world, c.channel, c.rank); ok || c.split == nil {
		return s, ok
	}
	return waiting(c.ctl, c.world, c.split.channel, c.rank)
}

// enter writes this rank's header, waits for all ranks and compares theirs.
// n and aux are the arguments that must be equal. It returns the parity of the
// headers and mailboxes, which stay readable until the next enter.
func (c *shm) enter(op int, s Site, n, aux int) (parity int, err error) {
	parity = c.seq & 1
	c.seq++
	writeHeader(c.header(c.rank, parity), op, s, n, aux)
	waiting := word(c.ctl, c.base(c.rank)+rankWaiting)
	atomic.StoreUint32(waiting, uint32(parity)+1)
	err = c.barrier(s)
	atomic.StoreUint32(waiting, 0)
	if err != nil {
		return parity, err
	}
	first := c.header(0, parity)
	for r := 1; r < c.world; r++ {
		if other := c.header(r, parity); !bytes.Equal(compared(first), compared(other)) {
			return parity, mismatch(r, first, other)
		}
	}
	return parity, nil
}

// again is another barrier inside a collective.
func (c *shm) again(s Site, parity int) error {
	waiting := word(c.ctl, c.base(c.rank)+rankWaiting)
	atomic.StoreUint32(waiting, uint32(parity)+1)
	defer atomic.StoreUint32(waiting, 0)
	return c.barrier(s)
}

// spins returns how often a rank polls before it sleeps, and how long, so that short waits end without
// a system call: a rank that sleeps runs again 0.1 to 0.3 ms after it has been woken. With more ranks
// than processors polling only takes time from the slower rank; so it does in the samplers' channel,
// because their waits overlap the training step.
func spins(world, channel int) (polls int, long time.Duration) {
	switch {
	case world > parallel.CPUs():
		return fewPolls, 0
	case channel > 0:
		return 400, 0
	}
	return 400, 200 * time.Microsecond
}

// barrier waits until all ranks have arrived. First it polls, and yields to this process's other goroutines, which
// sample the next batch, between polls and as long as they have work. Then it takes short naps, and yields after each:
// the Go runtime gives the processor of a thread in a system call to other goroutines late. (It does so at once in
// time.Sleep, whose shortest sleep takes a millisecond where nothing else runs.) At last it sleeps, and wakes every
// 50 ms to check whether the run was aborted.
func (c *shm) barrier(s Site) error {
	ch := channelBase(c.channel)
	gen, abortFlag := word(c.ctl, ch+chGen), word(c.ctl, ctlAbort)
	if atomic.LoadUint32(abortFlag) != 0 {
		return &abortError{site: s, reason: abortText(c.ctl)}
	}
	old := atomic.LoadUint32(gen)
	arrived, sleepers := word(c.ctl, ch+chArrived), word(c.ctl, ch+chSleepers)
	if int(atomic.AddUint32(arrived, 1)) == c.world {
		atomic.StoreUint32(arrived, 0)
		atomic.AddUint32(gen, 1)
		if atomic.LoadUint32(sleepers) > 0 {
			futexWake(gen)
		}
		return nil
	}
	start := time.Now()
	defer func() { c.waited += time.Since(start) }()
	idle, now, shared := start, start, start
	for i := 0; i < c.spin || c.spinLong > 0 && now.Sub(idle) < c.spinLong; i++ {
		if atomic.LoadUint32(gen) != old {
			return nil
		}
		runtime.Gosched()
		before := now
		if now = time.Now(); now.Sub(before) > worked && c.spin > fewPolls && atomic.LoadUint32(abortFlag) == 0 {
			i, idle = 0, now
		}
		if now.Sub(shared) > shareAfter {
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			shared = now
		}
	}
	for nap := 0; atomic.LoadUint32(gen) == old; nap++ {
		if atomic.LoadUint32(abortFlag) != 0 {
			return &abortError{site: s, reason: abortText(c.ctl)}
		}
		sleep := 50 * time.Millisecond
		if nap < naps && c.spin > fewPolls {
			sleep = napTime
		}
		atomic.AddUint32(sleepers, 1)
		futexWait(gen, old, sleep)
		atomic.AddUint32(sleepers, ^uint32(0))
		if sleep == napTime {
			runtime.Gosched()
		}
	}
	return nil
}

const (
	fewPolls = 20                    // of a rank that shares its processor with other ranks
	worked   = 10 * time.Microsecond // a poll takes so long only if another goroutine has run
	naps     = 100
	napTime  = 50 * time.Microsecond

	// shareAfter is how long a rank polls before it lets another process run on its processor: it may be the rank for
	// which it waits.
	shareAfter = 20 * time.Microsecond
)

// header is rank's header.
func (c *shm) header(rank, parity int) []byte { return headerAt(c.ctl, c.base(rank), parity) }

// mail is rank's mailbox.
func (c *shm) mail(rank, parity int) []byte {
	b := c.base(rank) + rankMail + parity*mailSize
	return c.ctl[b : b+mailSize : b+mailSize]
}

func (c *shm) base(rank int) int { return rankBase(c.world, c.channel, rank) }

func headerAt(ctl []byte, base, parity int) []byte {
	b := base + parity*headerSize
	return ctl[b : b+headerSize : b+headerSize]
}

func (c *shm) Barrier(s Site) (err error) {
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	_, err = c.enter(opBarrier, s, 0, 0)
	return err
}

func (c *shm) AllGather(s Site, mine []byte) (all [][]byte, err error) {
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	return c.gather(opAllGather, s, 0, 0, mine)
}

func (c *shm) SumInt64(s Site, v []int64) (err error) {
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

func (c *shm) Broadcast(s Site, root int, data []float32) (err error) {
	if err := checkRoot(s, root, c.world); err != nil {
		return err
	}
	if err := c.begin(s); err != nil {
		return err
	}
	defer c.end(&err)
	var mine []byte
	if c.rank == root {
		mine = float32Bytes(data)
	}
	all, err := c.gather(opBroadcast, s, len(data), root, mine)
	if err != nil {
		return err
	}
	copy(float32Bytes(data), all[root])
	return nil
}

// gather sends short messages through the mailboxes, with one barrier, and longer ones through a
// region of the data file that exists for this call.
func (c *shm) gather(op int, s Site, n, aux int, mine []byte) ([][]byte, error) {
	next := c.seq & 1
	if len(mine) <= mailSize {
		copy(c.mail(c.rank, next), mine)
	}
	binary.LittleEndian.PutUint64(c.header(c.rank, next)[headerMail:], uint64(len(mine)))
	parity, err := c.enter(op, s, n, aux)
	if err != nil {
		return nil, err
	}
	total, fits := 0, true
	lens, all := make([]int, c.world), make([][]byte, c.world)
	for r := range all {
		lens[r] = int(binary.LittleEndian.Uint64(c.header(r, parity)[headerMail:]))
		total += lens[r]
		fits = fits && lens[r] <= mailSize
	}
	if fits {
		for r := range all {
			all[r] = clone(c.mail(r, parity)[:lens[r]])
		}
		return all, nil
	}
	reg, err := c.alloc(s, parity, total)
	if err != nil {
		return nil, err
	}
	defer c.release(reg)
	off := 0
	for _, l := range lens[:c.rank] {
		off += l
	}
	copy(reg.mem[off:], mine)
	if err := c.again(s, parity); err != nil {
		return nil, err
	}
	off = 0
	for r, l := range lens {
		all[r] = clone(reg.mem[off : off+l])
		off += l
	}
	return all, nil
}
