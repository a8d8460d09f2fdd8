package sample

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// MaxTurns is the largest number of ranks that take turns; see Peers.Turns.
const MaxTurns = graphops.MaxDivision

// turns is the state of ranks that take turns: of the next steps, as many as there are ranks, each rank
// expands one for all ranks, up to the farthest hop, and divides it into the ranks' parts. Then they exchange
// these, in one exchange instead of two for each hop of each batch. Compared with an expansion of each batch
// together, a node has one number, and the ranks wait for each other once.
type turns struct {
	// The announced loop: batches first to end-1 of an epoch.
	epoch, first, end int
	seeds             func(step int) []int32 // nil: none is announced

	at, n int       // the steps of which this rank has its parts: n from at
	from  []message // by step: this rank's part and the batch's seeds, in the memory of messages; nothing of its own turn
	state []uint32  // by step: one of the kinds below
	taken []bool    // by step: whether a batch has this rank's part
	err   error     // why this rank could not sample the batch of its own turn

	whole  *memory // that batch
	blocks []graphops.HostBlock
	divide graphops.Division
	parts  []graphops.RankPart // of it, by rank
	read   graphops.RankPart   // of another turn
	seen   []int32             // its seeds
}

// What a message has.
const (
	noPart     = iota // there are fewer steps than ranks
	aPart             // of the batch of the sender's turn
	failedPart        // the sender could not sample it
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

// Ready is the number of the next batches that Sample needs no other rank for: in turns, this rank has its parts of
// them. It is the same on all ranks that have sampled as many batches, and they meet again after these batches.
func (c *Cooperative) Ready() (batches int) {
	for _, taken := range c.turns.taken[:c.turns.n] {
		if !taken {
			batches++
		}
	}
	return batches
}

// sampleInTurn samples a batch from this rank's part of it.
func (c *Cooperative) sampleInTurn(b *Batch, seeds []int32) error {
	t, s, m := &c.turns, c.s, b.mem
	if b.Step < t.at || b.Step >= t.at+t.n || t.taken[b.Step-t.at] {
		if err := c.takeTurn(b); err != nil {
			return err
		}
	}
	turn := b.Step - t.at // the rank whose turn it was
	switch {
	case turn == c.p.Rank && t.err != nil:
		return t.err
	case t.state[turn] == failedPart: // that rank ends now, and this one with it
		for r := range c.send {
			c.send[r] = c.send[r][:0]
		}
		if err := c.allToAll(); err != nil {
			return err
		}
		return fmt.Errorf("sample: rank %d could not sample step %d for all ranks", turn, b.Step)
	}
	announced, err := c.takePart(b, turn)
	if err != nil {
		return err
	}
	if !slices.Equal(announced, seeds) {
		return fmt.Errorf("sample: the seeds of epoch %d, step %d are not those that were announced; all ranks must sample the same batches", b.Epoch, b.Step)
	}
	hop := s.c.Hops - 1
	s.rows = s.rows[:0] // those of another batch
	if err := c.inputs(b, m, hop); err != nil {
		return err
	}
	c.complete(m, hop)
	s.hint = len(m.ids)
	b.Seeds = m.ids[:len(b.Seeds):len(b.Seeds)]
	s.finish(b)
	return nil
}

// takeTurn expands this rank's batch of the next steps, divides it, and exchanges the parts.
func (c *Cooperative) takeTurn(b *Batch) error {
	t, me := &c.turns, c.p.Rank
	t.at, t.n, t.err = b.Step, 0, nil
	n := min(c.p.World, t.end-b.Step)
	t.from, t.state, t.taken = resize(t.from, c.p.World), resize(t.state, c.p.World), resize(t.taken, c.p.World)
	clear(t.taken)
	kind := noPart
	if me < n {
		kind = aPart
		if t.err = c.expandWhole(b.Epoch, b.Step+me, t.seeds(b.Step+me)); t.err != nil {
			kind = failedPart
		}
	}
	for r := range c.send {
		out := c.send[r][:0]
		if r != me {
			for _, v := range [...]int{turning, b.Epoch, b.Step, n, kind} {
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			}
			if kind == aPart {
				seeds := t.whole.ids[:t.blocks[0].NumDst]
				out = appendWords(binary.LittleEndian.AppendUint32(out, uint32(len(seeds))), seeds)
				out = t.parts[r].Append(out, r, c.p.Sums)
			}
		}
		c.send[r] = out
	}
	if err := c.allToAll(); err != nil {
		return err
	}
	for r := range c.got {
		if r == me {
			continue
		}
		in := message{rest: c.got[r]}
		kind, err := in.kind(r, b)
		if err != nil {
			return err
		}
		epoch, step, steps := in.word(), in.word(), in.word()
		if in.short || kind != turning || epoch != uint32(b.Epoch) || step != uint32(b.Step) || steps != uint32(n) {
			return otherBatch(me, r, b)
		}
		if t.state[r] = in.word(); t.state[r] != aPart {
			if err := in.end(r); err != nil {
				return err
			}
		}
		t.from[r] = in
	}
	t.n = n
	return nil
}

// expandWhole expands a batch of all ranks, but for the farthest hop, and divides it.
func (c *Cooperative) expandWhole(epoch, step int, seeds []int32) error {
	s, t := c.s, &c.turns
	if t.whole == nil {
		t.whole = &memory{ids: make([]int32, 0, s.hint+1), hops: make([]edges, s.c.Hops)}
		t.divide = graphops.Division{World: c.p.World, Owners: c.owners}
		t.parts = make([]graphops.RankPart, c.p.World)
		for r := range t.parts {
			t.parts[r].Coop = make([]graphops.RankHop, s.c.Hops)
		}
	}
	m := t.whole
	if err := s.seeds(m, Seeds{IDs: seeds}); err != nil {
		return err
	}
	s.rows, t.blocks = s.rows[:0], t.blocks[:0]
	for hop := range s.c.Hops - 1 {
		dst := len(m.ids)
		if err := s.expand(epoch, step, hop, m, s.numbers, &m.ids); err != nil {
			return err
		}
		e := &m.hops[hop]
		t.blocks = append(t.blocks, graphops.HostBlock{NumDst: dst, Level: hop, Graph: s.g, Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights})
	}
	t.divide.Nodes(t.parts, m.ids, t.blocks)
	for hop := range t.blocks {
		t.divide.Hop(t.parts, &t.blocks[hop], m.ids)
		s.yield()
	}
	return nil
}

// takePart puts this rank's part of the batch of a turn into b, and returns the seeds of all ranks.
func (c *Cooperative) takePart(b *Batch, turn int) ([]int32, error) {
	t, s := &c.turns, c.s
	t.taken[turn] = true
	p, seeds := &t.read, []int32(nil)
	if turn == c.p.Rank {
		p, seeds = &t.parts[turn], t.whole.ids[:t.blocks[0].NumDst]
	} else {
		swapPart(p, b.mem)
		in := t.from[turn]
		t.seen = in.words(t.seen, int(in.word()))
		seeds = t.seen
		for hop := range p.Hops {
			p.Hops[hop].Level, p.Hops[hop].Graph = hop, s.g
		}
		valid := p.Read(in.take, c.p.Rank, c.p.World, c.p.Sums)
		if err := in.end(turn); err != nil {
			return nil, err
		}
		if !valid {
			return nil, fmt.Errorf("sample: rank %d sent a batch of other sizes; all ranks must run the same program", turn)
		}
	}
	swapPart(p, b.mem)
	m := b.mem
	for hop := range p.Hops {
		e, k, h := &m.hops[hop], &m.coop[hop], &s.made[hop]
		*h = graphops.HostBlock{
			NumDst: len(e.indptr) - 1, NumSrc: len(k.IDs), Level: hop, Graph: s.g, SrcIDs: k.IDs, Halo: &k.Halo,
			Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights,
		}
		if c.p.Sums {
			k.Sums.Reads[c.p.Rank] = graphops.Segments{Indptr: k.Indptr[:h.NumDst+1], Indices: k.Indices[:k.Indptr[h.NumDst]]}
			k.SetSums(hop, s.g)
		}
	}
	b.Seeds = m.ids[:p.Seeds]
	return seeds, nil
}

// swapPart swaps the arrays of a part and of a batch's memory.
func swapPart(p *graphops.RankPart, m *memory) {
	hops := len(m.hops)
	if p.Hops == nil {
		p.Hops = make([]graphops.HostBlock, hops-1)
	}
	if m.coop == nil {
		m.coop = make([]graphops.RankHop, hops)
	}
	if p.Coop == nil {
		p.Coop = make([]graphops.RankHop, hops)
	}
	p.IDs, m.ids = m.ids, p.IDs
	p.Coop, m.coop = m.coop, p.Coop
	for hop := range p.Hops {
		h, e := &p.Hops[hop], &m.hops[hop]
		h.Indptr, e.indptr = e.indptr, h.Indptr
		h.Indices, e.indices = e.indices, h.Indices
		h.EdgePos, e.edgePos = e.edgePos, h.EdgePos
		h.Weights, e.weights = e.weights, h.Weights
	}
}

// owners sets the owners of nodes.
func (c *Cooperative) owners(nodes []int32, owner []uint8) {
	ownersOf(c.p.Owners, c.p.World, nodes, owner)
}
