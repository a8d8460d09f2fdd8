package cuda

import "sync"

// Small copies to the host that nobody waits for yet, such as a step's loss, use a ring of pinned
// slots per stream. Like the stage, it is made when the device is opened, because pinning memory
// later could wait for a collective that waits for this rank.
const (
	// LaterSize is the most bytes that [Stream.CopyOutLater] copies.
	LaterSize  = 64
	laterSlots = 64
)

type laters struct {
	mu    sync.Mutex
	mem   *Pinned
	slots [laterSlots]struct {
		done *Event
		who  *Later // the Later that owns the slot's bytes; nil if there is none
	}
	next int
}

func (g *laters) fill(d *Device) (err error) {
	if g.mem, err = d.Pin(laterSlots * LaterSize); err != nil {
		return err
	}
	for i := range g.slots {
		if g.slots[i].done, err = d.Event(false); err != nil {
			return err
		}
	}
	return nil
}

// Later is a copy to the host in progress.
type Later struct {
	s    *Stream
	slot int
	n    int64
	// Under the ring's mu:
	bytes []byte
	err   error
	got   bool
}

// CopyOutLater starts a copy of n bytes from src, at most [LaterSize], with their values at this
// point of the stream. It returns at once, unless 64 earlier copies are still unread; then it waits
// for the first of them.
func (s *Stream) CopyOutLater(src Ptr, n int64) *Later {
	if n > LaterSize {
		panic("cuda: CopyOutLater copies LaterSize bytes at most")
	}
	g := &s.laters
	g.mu.Lock()
	defer g.mu.Unlock()
	slot := &g.slots[g.next]
	if slot.who != nil {
		slot.who.get()
	}
	l := &Later{s: s, slot: g.next, n: n}
	slot.who = l
	s.CopyToPinned(g.mem, int64(g.next)*LaterSize, src, n)
	s.Record(slot.done)
	g.next = (g.next + 1) % laterSlots
	return l
}

// Wait waits for the bytes, but not for later work on the stream. The error is the device's
// failure. Calling it again returns the same; the bytes are read-only.
func (l *Later) Wait() ([]byte, error) {
	g := &l.s.laters
	g.mu.Lock()
	defer g.mu.Unlock()
	l.get()
	return l.bytes, l.err
}

// get copies the bytes out of the slot. The caller holds mu.
func (l *Later) get() {
	if l.got {
		return
	}
	l.got = true
	slot := &l.s.laters.slots[l.slot]
	slot.who = nil
	if l.err = slot.done.Sync(); l.err != nil {
		return
	}
	l.err = l.s.d.alive("copying from the device", func() {
		at := int64(l.slot) * LaterSize
		l.bytes = append(l.bytes, l.s.laters.mem.Bytes[at:at+l.n]...)
	})
}
