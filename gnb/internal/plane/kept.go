package plane

// Kept is rows that stay after the last batch that needs them has been gathered, until other rows need their room, also
// from one loop to the next: a row that batches read again and again then comes once. The zero value has none.
//
// One window at a time has it; see [Options.Kept]. Windows of one Kept are all of a [Machine], of the same memory, or none is.
//
// Where the windows have room for the rows of all nodes, the row of a node is in the slot of its number: then a batch can
// read rows there, as it reads a dataset's own; see [Ticket.Table].
type Kept struct {
	rows   rows
	all    bool   // slots are the numbers of nodes
	table  *table // of a window without a Machine, as slots
	slots  *slots
	window *Window // that has it, or had it last
}

// begin gives a window the rows that are kept. It reports false if another window that has them is still open.
func (k *Kept) begin(w *Window) bool {
	if old := k.window; old != nil {
		if !old.isClosed() {
			return false
		}
		old.Wait()
	}
	if k.window == nil {
		k.rows.keeps = true
		k.all = w.hasRoomForAll()
	}
	k.window = w
	k.rows.settle(func(v int32) {
		if k.table != nil {
			k.table.drop(v)
		}
	})
	return true
}

// rows says which rows have slots, and which of these batches need. A slot has a number from 0.
type rows struct {
	// keeps means that a row which no batch needs keeps its slot until take gives it to another one.
	keeps  bool
	slots  []ofSlot
	free   []int32 // slots without a row
	needed int     // slots whose rows batches need
	hand   int     // where take looks for a row that no batch needs
}

// ofSlot is what is known of a slot.
type ofSlot struct {
	node int32 // whose row it has, or will have; -1 for none
	uses int32 // batches that need it
	here bool  // it has come; known only where rows are kept
}

// has reports whether a slot is that of a node's row.
func (r *rows) has(slot, node int32) bool {
	return slot >= 0 && int(slot) < len(r.slots) && r.slots[slot].node == node
}

// take gives a node's row a slot that no batch needs: a free one, or a new one while there are fewer than most, or that of
// a row which it then replaces. It returns that row's node, or -1.
//
// It replaces rows in the order of their slots, and begins again at the first one.
func (r *rows) take(node int32, most int) (slot, replaced int32) {
	n := len(r.free)
	switch {
	case n > 0:
		slot = r.free[n-1]
		r.free = r.free[:n-1]
	case r.keeps && len(r.slots) >= most && r.needed < len(r.slots):
		for r.hand %= len(r.slots); r.slots[r.hand].uses > 0; r.hand = (r.hand + 1) % len(r.slots) {
		}
		slot = int32(r.hand)
		r.hand++
		replaced = r.slots[slot].node
		r.slots[slot] = ofSlot{node: node}
		return slot, replaced
	default:
		slot = int32(len(r.slots))
		r.slots = append(r.slots, ofSlot{})
	}
	r.slots[slot] = ofSlot{node: node}
	return slot, -1
}

// place gives a node's row a slot that no row has.
func (r *rows) place(node, slot int32) {
	for int(slot) >= len(r.slots) {
		r.slots = append(r.slots, ofSlot{node: -1})
	}
	r.slots[slot] = ofSlot{node: node}
}

// need says that a batch needs a slot's row.
func (r *rows) need(slot int32) {
	s := &r.slots[slot]
	if s.uses++; s.uses == 1 {
		r.needed++
	}
}

// done says that a batch which needed a slot's row has been gathered. It reports whether the row has lost its slot.
func (r *rows) done(slot int32) (lost bool) {
	s := &r.slots[slot]
	if s.uses--; s.uses > 0 {
		return false
	}
	r.needed--
	if r.keeps {
		return false
	}
	s.node = -1
	r.free = append(r.free, slot)
	return true
}

// came says that the row of a slot is there.
func (r *rows) came(slot int32) { r.slots[slot].here = true }

// settle begins a loop with the rows that are there, and drops the others.
func (r *rows) settle(drop func(node int32)) {
	r.needed, r.free = 0, r.free[:0]
	for at := range r.slots {
		s := &r.slots[at]
		s.uses = 0
		if s.node >= 0 && !s.here {
			drop(s.node)
			s.node = -1
		}
		if s.node < 0 {
			r.free = append(r.free, int32(at))
		}
	}
}
