package sample

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
)

// MaxTurns is the largest number of ranks that take turns; see Peers.Turns.
const MaxTurns = graphops.MaxDivision

// turns is the state of ranks that take turns: of the next steps, as many as there are ranks, each rank
// expands one for all ranks, up to the farthest hop. Then they exchange these whole batches, in one exchange
// instead of two for each hop of each batch, and each rank finds its part of all of them. Compared with an
// expansion of each batch together, a node has one number, and the ranks wait for each other once.
type turns struct {
	// The announced loop: batches first to end-1 of an epoch.
	epoch, first, end int
	seeds             func(step int) []int32 // nil: none is announced

	at, n int     // the steps of which this rank has the whole batches: n from at
	whole []whole // by step
	own   *memory // of this rank's
	out   []byte  // its message
	part  graphops.Division
}

// whole is a batch of all ranks up to the farthest hop. Its arrays are those of a Sampler's batch, or of another rank's message,
// and are only read.
type whole struct {
	ids    []int32
	hops   []graphops.HostBlock // with the rows of the whole batch
	err    error                // why this rank could not sample it
	failed bool                 // another rank could not sample it
}

// The kinds of whole batches in a message.
const (
	noBatch = iota // there are fewer steps than ranks
	aBatch
	failedBatch
)

// Foresee announces the next batches: those of the steps first to end-1 of an epoch, and what their seeds
// are. All ranks announce the same. If the ranks take turns (Peers.Turns), Sample may then sample batches
// before it is asked for them. An announcement holds until the next one, and seeds may be called until then.
func (c *Cooperative) Foresee(epoch, first, end int, seeds func(step int) []int32) {
	t := &c.turns
	t.epoch, t.first, t.end, t.seeds, t.n = epoch, first, end, seeds, 0
}

// takesTurns reports whether a batch is one of those that ranks sample in turns. All ranks decide alike.
func (c *Cooperative) takesTurns(b *Batch) bool {
	t := &c.turns
	return c.p.Turns && c.p.World <= MaxTurns && c.s.c.Hops > 1 && !c.p.InputHalo &&
		t.seeds != nil && b.Epoch == t.epoch && b.Step >= t.first && b.Step < t.end
}

// last reports whether no rank exchanges anything more in the announced loop.
func (t *turns) last() bool { return t.seeds != nil && t.n > 0 && t.at+t.n >= t.end }

// sampleInTurn samples a batch from the whole batch.
func (c *Cooperative) sampleInTurn(b *Batch, seeds []int32) error {
	t, s, m := &c.turns, c.s, b.mem
	if b.Step < t.at || b.Step >= t.at+t.n {
		if err := c.takeTurn(b); err != nil {
			return err
		}
	}
	w := &t.whole[b.Step-t.at]
	switch {
	case w.err != nil:
		return w.err
	case w.failed: // that rank ends now, and this one with it
		for r := range c.send {
			c.send[r] = c.send[r][:0]
		}
		if err := c.allToAll(); err != nil {
			return err
		}
		return fmt.Errorf("sample: rank %d could not sample step %d for all ranks", b.Step-t.at, b.Step)
	case len(w.ids) < len(seeds) || w.hops[0].NumDst != len(seeds) || !slices.Equal(w.ids[:len(seeds)], seeds):
		return fmt.Errorf("sample: the seeds of epoch %d, step %d are not those that were announced; all ranks must sample the same batches", b.Epoch, b.Step)
	}
	own := c.divide(m, w)
	hop := s.c.Hops - 1
	s.rows = s.rows[:0] // those of another batch
	if err := c.inputs(b, m, hop); err != nil {
		return err
	}
	c.complete(m, hop)
	s.hint = len(m.ids)
	b.Seeds = m.ids[:own:own]
	s.finish(b)
	return nil
}

// takeTurn expands this rank's batch of the next steps, and exchanges the batches.
func (c *Cooperative) takeTurn(b *Batch) error {
	t := &c.turns
	t.at, t.n = b.Step, 0
	n := min(c.p.World, t.end-b.Step)
	t.whole = resize(t.whole, c.p.World)
	kind := noBatch
	if me := c.p.Rank; me < n {
		w := &t.whole[me]
		*w = whole{hops: w.hops[:0]}
		kind = aBatch
		if w.err = c.expandWhole(w, b.Epoch, b.Step+me, t.seeds(b.Step+me)); w.err != nil {
			kind = failedBatch
		}
	}
	out := t.out[:0]
	for _, v := range [...]int{turning, b.Epoch, b.Step, n, kind} {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	if kind == aBatch {
		out = t.whole[c.p.Rank].append(out)
	}
	t.out = out
	for r := range c.send {
		if r != c.p.Rank {
			c.send[r] = out
		}
	}
	err := c.allToAll()
	for r := range c.send {
		if r != c.p.Rank {
			c.send[r] = nil // they are one slice
		}
	}
	if err != nil {
		return err
	}
	for r := range c.got {
		if r == c.p.Rank {
			continue
		}
		in := message{rest: c.got[r]}
		kind, err := in.kind(r, b)
		if err != nil {
			return err
		}
		epoch, step, steps := in.word(), in.word(), in.word()
		if in.short || kind != turning || epoch != uint32(b.Epoch) || step != uint32(b.Step) || steps != uint32(n) {
			return otherBatch(c.p.Rank, r, b)
		}
		switch in.word() {
		case aBatch:
			if err := t.whole[r].read(&in, c, r); err != nil {
				return err
			}
		case failedBatch:
			t.whole[r] = whole{hops: t.whole[r].hops, failed: true}
		}
		if err := in.end(r); err != nil {
			return err
		}
	}
	t.n = n
	return nil
}

// expandWhole expands a batch of all ranks, but for the farthest hop.
func (c *Cooperative) expandWhole(w *whole, epoch, step int, seeds []int32) error {
	s, t := c.s, &c.turns
	if t.own == nil {
		t.own = &memory{ids: make([]int32, 0, s.hint+1), hops: make([]edges, s.c.Hops)}
	}
	m := t.own
	if err := s.seeds(m, seeds); err != nil {
		return err
	}
	s.rows = s.rows[:0]
	for hop := range s.c.Hops - 1 {
		dst := len(m.ids)
		if err := s.expand(epoch, step, hop, m, s.numbers, &m.ids); err != nil {
			return err
		}
		e := &m.hops[hop]
		w.hops = append(w.hops, graphops.HostBlock{NumDst: dst, Level: hop, Graph: s.g, Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights})
	}
	w.ids = m.ids
	return nil
}

// append appends the batch to a message.
func (w *whole) append(out []byte) []byte {
	size := 8 + 4*len(w.ids)
	for i := range w.hops {
		h := &w.hops[i]
		size += 8 + 8*len(h.Indptr) + 12*len(h.Indices) + 4*len(h.Weights)
	}
	out = slices.Grow(out, size)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(w.ids)))
	out = append(out, bytesOf(w.ids)...)
	for i := range w.hops {
		h := &w.hops[i]
		out = binary.LittleEndian.AppendUint32(out, uint32(h.NumDst))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(h.Indices)))
		out = append(out, bytesOf(h.Indptr)...)
		out = append(out, bytesOf(h.Indices)...)
		out = append(out, bytesOf(h.EdgePos)...)
		out = append(out, bytesOf(h.Weights)...)
	}
	return out
}

// read reads the batch from rank r's message, whose memory it keeps.
func (w *whole) read(in *message, c *Cooperative, r int) error {
	hops := resize(w.hops, c.s.c.Hops-1)
	*w = whole{ids: read[int32](in, int(in.word())), hops: hops}
	for i := range hops {
		h := &hops[i]
		dst, edges := int(in.word()), int(in.word())
		h.NumDst, h.Level, h.Graph = dst, i, c.s.g
		h.Indptr = read[int64](in, dst+1)
		h.Indices, h.EdgePos = read[int32](in, edges), read[int64](in, edges)
		if c.s.g.EdgeWeights != nil {
			h.Weights = read[float32](in, edges)
		}
	}
	if in.short || !c.turns.part.Valid(w.ids, hops) {
		return fmt.Errorf("sample: rank %d sent a batch of other sizes; all ranks must run the same program", r)
	}
	return nil
}

// bytesOf is the memory of numbers. Ranks that take turns are on one machine, so the order of bytes is the same.
func bytesOf[T int32 | int64 | float32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// read returns the next n numbers of a message, in its memory. They have no alignment.
func read[T int32 | int64 | float32](m *message, n int) []T {
	var zero T
	if b := m.take(n * int(unsafe.Sizeof(zero))); len(b) > 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
	}
	return nil
}

// divide finds this rank's part of a whole batch: its nodes, and their blocks at all hops but the farthest. It
// returns the number of its seeds.
func (c *Cooperative) divide(m *memory, w *whole) (seeds int) {
	d := &c.turns.part
	if d.World == 0 {
		*d = graphops.Division{Rank: c.p.Rank, World: c.p.World, Owners: c.owners}
	}
	if m.coop == nil {
		m.coop = make([]graphops.RankHop, c.s.c.Hops)
	}
	m.ids, seeds = d.Nodes(m.ids, w.ids, w.hops)
	for hop := range w.hops {
		e, k, h := &m.hops[hop], &m.coop[hop], &c.s.made[hop]
		*h = graphops.HostBlock{Level: hop, Graph: c.s.g, Halo: &k.Halo, Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights}
		d.Hop(h, k, &w.hops[hop], w.ids, m.ids, c.p.Sums)
		c.s.yield()
		e.indptr, e.indices, e.edgePos, e.weights = h.Indptr, h.Indices, h.EdgePos, h.Weights
	}
	return seeds
}

// owners sets the owners of nodes.
func (c *Cooperative) owners(nodes []int32, owner []uint8) {
	if world := c.p.World; c.p.Owners == nil {
		for i, v := range nodes {
			owner[i] = uint8(Owner(v, world))
		}
		return
	}
	for i, v := range nodes {
		owner[i] = uint8(c.p.Owners.Owner(v, c.p.World))
	}
}
