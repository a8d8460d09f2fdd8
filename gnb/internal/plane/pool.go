package plane

import (
	"cmp"
	"math"
	"math/bits"
)

// Pool is a cache whose rows are replaced by Belady's rule: after each batch it keeps the rows that the known batches
// read again soonest and, of rows that no known batch reads, those with the highest prior. It keeps its rows from one loop
// to the next. A [Window] that has it as Pool and knows some batches ahead replaces its rows; other windows read them.
//
// What it holds after each batch is a function of the batches alone, so a rank asks for the same rows in each run. The
// misses are those of hotness.Trace.Belady.
//
// Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2),
// 1966, doi:10.1147/sj.52.0078.
type Pool struct {
	slots
	limit int // rows that it keeps after a batch
	prior []float32

	rows    map[int32]int32 // the entry of each row that is held, or that a known batch reads
	entries []entry
	unused  []int32 // entries of no row
	held    int
	worst   []candidate // a heap: the first is to be replaced first; some are stale
	batch   int32       // number of the next batch of the current loop, of all loops

	window *Window // that replaces rows, or did so last
}

// entry is what a pool knows of a row.
type entry struct {
	node, slot int32 // slot is -1 if the row is not held
	next       int32 // the next known batch that reads it, or never
	last       int32 // one more than the last batch that read it
	at, place  int32 // the last known batch that reads it, and where in the batch's list
	version    int32
}

const never = math.MaxInt32

// candidate is a row to replace, as it was when it entered the heap.
type candidate struct {
	entry, version   int32
	next, last, node int32
	prior            float32
}

// before reports whether c is replaced before d.
func (c candidate) before(d candidate) bool {
	if c.next != d.next {
		return c.next > d.next
	}
	if c.next == never && c.prior != d.prior {
		return c.prior < d.prior
	}
	return cmp.Or(cmp.Compare(c.last, d.last), cmp.Compare(d.node, c.node)) < 0
}

// NewPool makes a pool that keeps limit bytes of rows, and begins with the rows of a cache, whose memory it takes over. The
// prior of each node, which may be nil, is kept too.
func NewPool(c *Cache, prior []float32, limit int64) *Pool {
	p := &Pool{slots: slots{rowBytes: c.rowBytes}, prior: prior, rows: map[int32]int32{}}
	if c.rowBytes > 0 {
		p.limit = int(limit / int64(c.rowBytes))
	}
	const chunk = chunkRows
	for at := 0; at+chunk <= c.count; at += chunk {
		p.add(c.rows[at*c.rowBytes : (at+chunk)*c.rowBytes])
	}
	taken := int32(len(p.chunks) * chunk)
	p.free = p.free[:0] // the cache's rows are in the slots so far
	at := int32(0)
	for w, word := range c.set {
		for ; word != 0; word &= word - 1 {
			v := int32(w<<6 + bits.TrailingZeros64(word))
			slot := at
			if at >= taken {
				slot = p.take()
				copy(p.row(p.chunks, slot), c.row(at))
			}
			p.hold(p.entry(v), slot)
			at++
		}
	}
	return p
}

// Rows is the number of rows that the pool holds.
func (p *Pool) Rows() int { return p.held }

// Row returns a node's row, or nil. It must not be called while a window replaces rows.
func (p *Pool) Row(v int32) []byte {
	if at := p.find(v); at >= 0 {
		return p.row(p.chunks, at)
	}
	return nil
}

// find returns the slot of a node's row, or -1.
func (p *Pool) find(v int32) int32 {
	if i, ok := p.rows[v]; ok {
		return p.entries[i].slot
	}
	return -1
}

// entry returns the number of a node's entry, which it makes if there is none.
func (p *Pool) entry(v int32) int32 {
	if i, ok := p.rows[v]; ok {
		return i
	}
	i := int32(len(p.entries))
	if n := len(p.unused); n > 0 {
		i, p.unused = p.unused[n-1], p.unused[:n-1]
	} else {
		p.entries = append(p.entries, entry{})
	}
	p.entries[i] = entry{node: v, slot: -1, next: never, version: p.entries[i].version + 1}
	p.rows[v] = i
	return i
}

// forget drops an entry of which nothing is known any more.
func (p *Pool) forget(i int32) {
	if e := &p.entries[i]; e.slot < 0 && e.next == never {
		e.version++
		delete(p.rows, e.node)
		p.unused = append(p.unused, i)
	}
}

// hold gives a row a slot.
func (p *Pool) hold(i, slot int32) {
	p.entries[i].slot = slot
	p.held++
	p.rank(i)
}

// rank enters a held row into the heap by what is known of it now.
func (p *Pool) rank(i int32) {
	e := &p.entries[i]
	e.version++
	if e.slot < 0 {
		return
	}
	c := candidate{entry: i, version: e.version, next: e.next, last: e.last, node: e.node}
	if p.prior != nil {
		c.prior = p.prior[e.node]
	}
	if len(p.worst) > 2*p.held+chunkRows { // most of it is stale
		kept := p.worst[:0]
		for _, x := range p.worst {
			if p.entries[x.entry].version == x.version {
				kept = append(kept, x)
			}
		}
		p.worst = kept
		for k := len(kept)/2 - 1; k >= 0; k-- {
			p.down(k)
		}
	}
	p.worst = append(p.worst, c)
	for k := len(p.worst) - 1; k > 0; {
		up := (k - 1) / 2
		if !p.worst[k].before(p.worst[up]) {
			break
		}
		p.worst[k], p.worst[up] = p.worst[up], p.worst[k]
		k = up
	}
}

func (p *Pool) down(k int) {
	for {
		least := k
		for _, child := range []int{2*k + 1, 2*k + 2} {
			if child < len(p.worst) && p.worst[child].before(p.worst[least]) {
				least = child
			}
		}
		if least == k {
			return
		}
		p.worst[k], p.worst[least] = p.worst[least], p.worst[k]
		k = least
	}
}

// replace drops the row to be replaced first, and returns its slot.
func (p *Pool) replace() (slot int32) {
	for {
		c := p.worst[0]
		last := len(p.worst) - 1
		p.worst[0] = p.worst[last]
		p.worst = p.worst[:last]
		p.down(0)
		if e := &p.entries[c.entry]; e.version == c.version {
			slot, e.slot = e.slot, -1
			p.held--
			p.forget(c.entry)
			return slot
		}
	}
}

// announce makes a batch known, which comes after all known ones. The batches are those of the window by their numbers.
func (p *Pool) announce(t *Ticket, number int32, of func(number int32) *Ticket) {
	t.after = make([]int32, len(t.away))
	for k, row := range t.away {
		t.after[k] = never
		i := p.entry(t.ids[row])
		if e := &p.entries[i]; e.next == never {
			e.next = number
			p.rank(i)
		} else {
			of(e.at).after[e.place] = number
		}
		p.entries[i].at, p.entries[i].place = number, int32(k)
	}
}

// missing is the number of rows of a batch that are not held.
func (p *Pool) missing(t *Ticket) (n int) {
	for _, row := range t.away {
		if p.entries[p.rows[t.ids[row]]].slot < 0 {
			n++
		}
	}
	return n
}

// plan finds the rows of the next batch: those that are held, and those to ask for. Then it replaces rows until no more than
// the limit are held. Slots of replaced rows are free when the batch has been gathered.
func (p *Pool) plan(t *Ticket) {
	for k, row := range t.away {
		i := p.rows[t.ids[row]] // announce has made it
		if at := p.entries[i].slot; at >= 0 {
			t.cached = append(t.cached, place{row, at})
		} else {
			at = p.take()
			p.entries[i].slot = at
			p.held++
			t.held = append(t.held, place{row, at})
			t.asked = append(t.asked, t.ids[row])
		}
		e := &p.entries[i]
		e.next, e.last = t.after[k], p.batch+1
		p.rank(i)
	}
	p.batch++
	for p.held > p.limit {
		t.dropped = append(t.dropped, p.replace())
	}
	t.after = nil
}

// Settle ends what the last window that has replaced rows left: nothing of its later batches is known any more, and rows
// that have not come are dropped. It reports false if that window is still open; the pool's rows then change.
func (p *Pool) Settle() bool {
	old := p.window
	if old == nil {
		return true
	}
	if !old.isClosed() {
		return false
	}
	old.Wait()
	for _, t := range old.planned {
		p.free = append(p.free, t.dropped...)
		came := false
		select {
		case <-t.ready:
			came = t.err == nil
		default:
		}
		for _, at := range t.held {
			i, ok := p.rows[t.ids[at.row]]
			if !came && ok && p.entries[i].slot == at.at {
				p.entries[i].slot = -1
				p.held--
				p.free = append(p.free, at.at)
			}
		}
	}
	p.window, old.planned = nil, nil
	p.worst = p.worst[:0]
	for i := range p.entries {
		e := &p.entries[i]
		if j, ok := p.rows[e.node]; !ok || j != int32(i) {
			continue
		}
		e.next = never
		p.rank(int32(i))
		p.forget(int32(i))
	}
	return true
}
