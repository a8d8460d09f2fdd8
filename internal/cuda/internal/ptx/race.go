package ptx

import "fmt"

// The race finder keeps, for each 4 bytes, or each byte where smaller accesses occur, the last
// write and the reads since. An access races with an earlier one of the same launch if nothing
// orders the two.
//
// Blocks of a launch are not ordered. Threads of a block are ordered by its barriers, which are
// counted in epochs. Lanes of a warp are ordered by warp barriers too: each lane has a clock, which
// counts the warp barriers it has passed, and stores the latest clock that it has seen of each
// other lane.

// cell records the accesses to some bytes. Blocks are numbered through all launches, from 1, so
// cells need not be cleared between launches.
type cell struct {
	writeBlock uint32
	writeEpoch uint16
	writeTid   uint16
	writeClock uint16
	writeLine  uint32
	writeKind  uint8 // 1: strong (an atomic, or volatile)

	readKind  uint8
	readBlock uint32 // the latest
	readMore  bool   // by several blocks
	readLanes uint32 // those of the warp that read
	readEpoch uint16
	readWarp  uint16 // manyWarps: several
	readClock uint16 // the latest
	readLine  uint32
}

const (
	manyWarps = 1<<16 - 1
	pageBytes = 1024
)

// shadow holds the cells of a region; pages are created at their first access.
type shadow struct{ pages []*page }

type page struct {
	fine  bool // one cell per byte
	cells []cell
}

func (m *Memory) forgetShadows() {
	for _, r := range m.live {
		r.shadow.pages = nil
	}
}

// touch checks an access of n bytes, all in one page if n divides off.
func (t *thread) touch(in *instr, r *region, off, n uint64, write, strong bool) {
	s := &r.shadow
	if s.pages == nil {
		s.pages = make([]*page, (cap(r.data)+16+pageBytes-1)/pageBytes)
	}
	skew := r.base & 15 // host memory may begin at any address
	off += skew
	pg := s.pages[off/pageBytes]
	if pg == nil {
		pg = &page{cells: make([]cell, pageBytes/4)}
		s.pages[off/pageBytes] = pg
	}
	if n < 4 && !pg.fine {
		cells := make([]cell, pageBytes)
		for i := range cells {
			cells[i] = pg.cells[i/4]
		}
		pg.fine, pg.cells = true, cells
	}
	at, end, step := off%pageBytes, off%pageBytes+n, uint64(1)
	if !pg.fine {
		at, end = at/4, end/4
	}
	for ; at < end; at += step {
		c := &pg.cells[at]
		if what := c.touch(t, in, r == t.w.shared, write, strong); what != "" {
			how := "reads"
			if write {
				how = "writes"
			}
			where := r.name
			if where == "" {
				where = "global memory"
			}
			addr := r.base + off - skew
			t.fail(in, Race, addr, "the thread %s %d bytes of %s at %#x, which %s", how, n, where, addr, what)
		}
	}
}

// touch records an access, and reports an earlier one that races with it.
func (c *cell) touch(t *thread, in *instr, shared, write, strong bool) string {
	w := t.w
	kind := uint8(truth(strong))
	if w.current(c.writeBlock, shared) && kind&c.writeKind == 0 && !c.writeOrdered(t) {
		return c.writer(w)
	}
	if !write {
		c.read(t, in, shared, kind)
		return ""
	}
	if w.current(c.readBlock, shared) && kind&c.readKind == 0 && !c.readsOrdered(t) {
		return c.reader(w)
	}
	c.writeBlock, c.writeEpoch, c.writeTid, c.writeClock, c.writeLine, c.writeKind = w.block, w.epoch, uint16(t.lin), t.clock, uint32(in.line), kind
	return ""
}

// current reports whether a block's record still counts: it must be of this launch, and in shared
// memory of the same block.
func (w *worker) current(block uint32, shared bool) bool {
	return block == w.block || block >= w.l.firstBlock && !shared
}

func (c *cell) writeOrdered(t *thread) bool {
	w := t.w
	if c.writeBlock != w.block {
		return false
	}
	return c.writeEpoch != w.epoch || int(c.writeTid) == t.lin || int(c.writeTid)>>5 == t.lin>>5 && t.seen[c.writeTid&31] >= c.writeClock
}

func (c *cell) readsOrdered(t *thread) bool {
	w := t.w
	switch {
	case c.readBlock != w.block || c.readMore:
		return false
	case c.readEpoch != w.epoch:
		return true
	case int(c.readWarp) != t.lin>>5:
		return false
	}
	for lanes, l := c.readLanes, 0; lanes != 0; lanes, l = lanes>>1, l+1 {
		if lanes&1 != 0 && l != t.lin&31 && t.seen[l] < c.readClock {
			return false
		}
	}
	return true
}

// read adds a reader to those since the last write.
func (c *cell) read(t *thread, in *instr, shared bool, kind uint8) {
	w := t.w
	lane, warp := uint32(1)<<(t.lin&31), uint16(t.lin>>5)
	if !w.current(c.readBlock, shared) || c.readsOrdered(t) {
		c.readBlock, c.readMore, c.readEpoch, c.readWarp, c.readLanes, c.readClock, c.readKind = w.block, false, w.epoch, warp, lane, t.clock, kind
	} else {
		if c.readBlock != w.block {
			c.readBlock, c.readMore = w.block, true
		}
		if c.readWarp != warp {
			c.readWarp = manyWarps
		}
		c.readEpoch = w.epoch
		c.readLanes |= lane
		c.readClock = max(c.readClock, t.clock)
		c.readKind &= kind
	}
	c.readLine = uint32(in.line)
}

func (c *cell) writer(w *worker) string {
	b := w.l.block
	lin := int(c.writeTid)
	who := fmt.Sprintf("thread %s", triple([3]uint32{uint32(lin % b.X), uint32(lin / b.X % b.Y), uint32(lin / (b.X * b.Y))}))
	return fmt.Sprintf("%s wrote in line %d, and %s", who+w.of(c.writeBlock), c.writeLine, w.unordered(c.writeBlock, false))
}

func (c *cell) reader(w *worker) string {
	who := "another thread"
	if c.readMore {
		who = "threads of several blocks"
	} else {
		who += w.of(c.readBlock)
	}
	return fmt.Sprintf("%s read in line %d, and %s", who, c.readLine, w.unordered(c.readBlock, c.readMore))
}

func (w *worker) of(block uint32) string {
	if block == w.block {
		return ""
	}
	i, g := int64(block-w.l.firstBlock), w.l.grid
	return " of block " + triple([3]uint32{uint32(i % int64(g.X)), uint32(i / int64(g.X) % int64(g.Y)), uint32(i / (int64(g.X) * int64(g.Y)))})
}

func (w *worker) unordered(block uint32, more bool) string {
	if block == w.block && !more {
		return "no barrier is between the two"
	}
	return "blocks of one launch have no order"
}
