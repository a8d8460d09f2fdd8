package sample

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// Peers connects the samplers of the ranks that expand a batch together.
type Peers struct {
	Rank, World int
	// Owners says which rank owns each node, equally on all ranks; nil is the hash [Owner].
	Owners Owners
	// InputHalo makes the block of the farthest hop list the rows that ranks read of each other, as all
	// other blocks do, and this rank's rows of all its nodes, also of those that only other ranks reach.
	// A batch of one hop always has these lists. They take two of the batch's exchanges, and no rank
	// needs them to read features, which are found by the nodes' ids.
	InputHalo bool
	// Sums gives the blocks of all hops but the farthest a [graphops.HaloSums], for layers that add up
	// rows at their owners. It needs no further exchange, and 4 bytes for each edge whose ends belong to
	// different ranks, 8 for each destination and rank.
	Sums bool
	// Turns lets ranks of one machine expand whole batches in turns, if the next batches are announced
	// ([Cooperative.Foresee]) and there are at most [MaxTurns] ranks. The batches are the same; see below.
	Turns bool
	// AllToAll sends send[r] to rank r and returns what each rank sent to this one, by rank; the
	// result is used until the next call. All ranks call it, and each waits for the others.
	AllToAll func(send [][]byte) ([][]byte, error)
}

// Cooperative samples batches together with the samplers of other ranks: each node of a batch has
// one owner (see [Owners]), which picks the node's neighbours once for all ranks.
//
// The batches of all ranks together are the batch that one [Sampler] draws for the same seeds: the
// same edges at each hop. A rank's batch holds the seeds and the destinations that it owns, in
// their order in that batch. The sources of its edges that other ranks own follow its own sources
// in each block, which therefore has a [graphops.Halo]: before a layer computes on the block, their
// rows must be fetched from their owners, or added up there (Peers.Sums). The sources of the farthest
// hop are not in that order, unless Peers.InputHalo is set, because their features need no owner.
//
// Hop by hop, a rank picks for its nodes and tells each owner which of the owner's nodes its edges
// reach: a node that it has reached at an earlier hop by its row there, another one by its id. The
// owner answers an id by the row. It numbers new nodes in the order in which the edges of the whole
// batch first reach them. Cost for each hop: two exchanges, of 4 bytes for each distinct source of a
// rank that another rank owns, 12 more for one that the rank reaches first at this hop, and for all
// hops but the last 8 bytes for each new node to each rank. Without Peers.InputHalo, the farthest hop
// of several has no exchange.
//
// With Peers.Turns, each rank expands every batch of its turn for all ranks, but for the farthest hop, divides
// it, and sends each rank its part: one exchange for as many batches as there are ranks. A part takes 12 bytes
// for each of the rank's edges, 8 for each destination, 4 for each node, 8 for each source that another rank
// owns, and with Sums 4 more for each end of an edge that the rank owns and 12 for each destination and other
// rank. That is more to move and less to compute and to wait for. With InputHalo, or batches of one hop, it
// changes nothing.
//
// Source: M. F. Balin, D. LaSalle, Ü. V. Çatalyürek, "Cooperative minibatching in graph neural
// networks", TMLR 2025, arXiv:2310.12403.
type Cooperative struct {
	s *Sampler
	p Peers

	seeds  []int32 // that this rank owns
	global []int32 // the rows of this rank's nodes in the batch of all ranks

	// The nodes of the batch that this rank has reached or was asked for, in that order; the table of
	// the Sampler has their numbers.
	nodes   []int32
	owner   []uint16
	source  []int32   // row in the hop's block; of other ranks' nodes, only if the hop reaches them; -1 if it is not known yet
	row     []int32   // row at the owner, of other ranks' nodes
	reached []byte    // 1 if the hop reaches the node; valid for other ranks' nodes
	others  [][]int32 // numbers of each other rank's nodes that an earlier hop has reached, ascending

	across    []across // edges of this rank's destinations at this hop, by the ranks that own their sources
	ask       []question
	asked     []question // by the other ranks
	answers   []answer
	next      []int
	keys      []uint64 // of the nodes that are new to this rank
	fresh     []uint64 // of this rank's new nodes
	send, got [][]byte
	turns     turns
}

// MaxPeers is the largest number of ranks that expand a batch together.
const MaxPeers = 1 << 16

// The key of a node at a hop is above that of another if the first edge that reaches it comes later
// in the whole batch: its high half is the destination's row in the whole batch. The rank that owns
// the destination sets the low half; all edges of a destination are that rank's.

// question is one rank's sources at a hop that one rank owns.
type question struct {
	at    int     // the place of the rows in the asking rank's halo
	known []int32 // rows of the nodes that earlier hops have reached; ascending
	// The other nodes: their ids if the question is on its way, and then their numbers.
	nodes []int32
	keys  []uint64
	halo  []int32 // numbers of all nodes, the known ones first; only at the asking rank
	edges across  // with Peers.Sums: the edges from these nodes; only at the answering rank
}

// answer is the reply to a question.
type answer struct {
	sources int      // rows of the answering rank's block
	sums    int      // destinations of its HaloSums
	sumsAt  int      // the place among them of the asking rank's, behind its own
	rows    []int32  // of the nodes that were not known
	fresh   []uint64 // keys of the answering rank's new nodes, ascending
}

// NewCooperative returns a sampler over g that samples with its peers; all of them have the same
// configuration. A [FrontierPicker] is refused, because no rank has the whole frontier. Ranks with
// Owners compare them here, over all nodes, so all ranks call it.
func NewCooperative(g *graphops.Graph, c Config, p Peers) (*Cooperative, error) {
	if isStepPicker(c.Picker) {
		return nil, fmt.Errorf("sample: a %T picks by all seeds of a step on each rank, but in a cooperative batch each rank has a part of them; use another Picker", c.Picker)
	}
	if err := c.checkDisjoint("a Cooperative sampler", "it saves the work of nodes that several seeds reach"); err != nil {
		return nil, err
	}
	if c.Frontier != nil {
		return nil, errors.New("sample: a FrontierPicker picks for a whole frontier, but in a cooperative batch each rank has a part of it; use a Picker")
	}
	if p.World < 1 || p.World > MaxPeers || p.Rank < 0 || p.Rank >= p.World || p.AllToAll == nil {
		return nil, fmt.Errorf("sample: rank %d of %d cannot sample cooperatively: there are 1 to %d ranks, connected by AllToAll", p.Rank, p.World, MaxPeers)
	}
	s, err := New(g, c)
	if err != nil {
		return nil, err
	}
	s.yields = true
	t := &Cooperative{
		s: s, p: p, others: make([][]int32, p.World), ask: make([]question, p.World), asked: make([]question, p.World),
		answers: make([]answer, p.World), across: make([]across, p.World), next: make([]int, p.World), send: make([][]byte, p.World), got: make([][]byte, p.World),
	}
	if p.Owners != nil {
		return t, t.agree()
	}
	return t, nil
}

// agree checks the owners of all nodes, which must be the same on all ranks.
func (c *Cooperative) agree() error {
	nodes := c.s.g.NumNodes()
	if o, ok := c.p.Owners.(*PartOwners); ok && len(o.of) != nodes {
		return fmt.Errorf("sample: the Owners have the parts of %d nodes, but the graph has %d nodes", len(o.of), nodes)
	}
	sum := uint64(nodes)
	for v := range int32(nodes) {
		r := c.ownerOf(v)
		if uint(r) >= uint(c.p.World) {
			return fmt.Errorf("sample: node %d belongs to rank %d by the Owners, but the ranks are 0 to %d", v, r, c.p.World-1)
		}
		sum = (sum ^ uint64(r)) * 0x100000001B3 // FNV-1
	}
	for r := range c.send {
		c.send[r] = binary.LittleEndian.AppendUint64(c.send[r][:0], sum)
	}
	got, err := c.p.AllToAll(c.send)
	for r := range got {
		if err == nil && r != c.p.Rank && !bytes.Equal(got[r], c.send[r]) {
			err = fmt.Errorf("sample: ranks %d and %d divide the nodes differently; all ranks must have the same Owners", c.p.Rank, r)
		}
	}
	return err
}

// Sample draws this rank's part of the batch of the given seeds, which are all seeds of a step.
// All ranks call it with the same arguments. Otherwise it is as [Sampler.Sample].
func (c *Cooperative) Sample(epoch, step int, seeds Seeds) (*Batch, error) {
	if err := c.s.enter(epoch, step); err != nil {
		return nil, err
	}
	defer c.s.busy.Store(false)
	if err := c.s.c.checkTimes(seeds, c.s.g.EdgeShape()); err != nil {
		return nil, err
	}
	m := c.s.memory()
	b := &Batch{Epoch: epoch, Step: step, owner: c.s, mem: m}
	if err := c.sample(b, seeds.IDs); err != nil {
		c.s.keep(m)
		return nil, err
	}
	return b, nil
}

// Hops is the number of hops, which is the number of blocks of each batch.
func (c *Cooperative) Hops() int { return c.s.c.Hops }

// ErrLeft matches the error of sampling together with a rank that samples no more batches of the loop.
var ErrLeft = errors.New("left the loop over batches")

// Leave tells the other ranks that this one samples no more batches of a loop that has more: their
// Sample, or Leave, for the next batch returns. Sample then fails with [ErrLeft]. Ranks that exchange
// something else over the same connection after each batch do so for [Cooperative.Ready] more before.
func (c *Cooperative) Leave() error {
	if c.turns.last() {
		return nil // no rank waits for another one in this loop
	}
	for r := range c.send {
		c.send[r] = binary.LittleEndian.AppendUint32(c.send[r][:0], leaving)
	}
	_, err := c.p.AllToAll(c.send)
	return err
}

// The first word of a message that asks.
const (
	asking = iota
	leaving
	turning
)

// kind reads the first word of rank r's message.
func (m *message) kind(r int, b *Batch) (uint32, error) {
	kind := m.word()
	if kind == leaving && !m.short {
		return kind, fmt.Errorf("sample: rank %d has %w before step %d; all ranks must leave it at the same step", r, ErrLeft, b.Step)
	}
	return kind, nil
}

// otherBatch is the error of ranks that sample different batches.
func otherBatch(rank, r int, b *Batch) error {
	return fmt.Errorf("sample: rank %d samples epoch %d, step %d, and rank %d another batch; all ranks must sample the same batches", rank, b.Epoch, b.Step, r)
}

func (c *Cooperative) sample(b *Batch, seeds []int32) error {
	if c.takesTurns(b) {
		return c.sampleInTurn(b, seeds)
	}
	c.turns.n = 0 // the whole batches are in the memory of messages, which is used again
	s, m, hops := c.s, b.mem, c.s.c.Hops
	if err := c.begin(m, seeds); err != nil {
		return err
	}
	all := len(seeds) // nodes that the batch of all ranks has reached
	for hop := range hops {
		if hop > 0 && hop == hops-1 && !c.p.InputHalo {
			if err := c.inputs(b, m, hop); err != nil {
				return err
			}
		} else {
			if err := c.hop(b, m, hop); err != nil {
				return err
			}
			if hop < hops-1 {
				all = c.inAll(all)
			}
		}
		c.complete(m, hop)
	}
	s.hint = len(m.ids)
	b.Seeds = m.ids[:len(c.seeds):len(c.seeds)]
	s.finish(b)
	return nil
}

// complete completes the arrays of a hop's block.
func (c *Cooperative) complete(m *memory, hop int) {
	e, h := &m.hops[hop], &c.s.made[hop]
	h.Level, h.Graph, h.Halo = hop, c.s.g, &m.coop[hop].Halo
	h.Indptr, h.Indices, h.EdgePos, h.Weights = e.indptr, e.indices, e.edgePos, e.weights
}

// hop expands a hop together with the other ranks.
func (c *Cooperative) hop(b *Batch, m *memory, hop int) error {
	s, dst, known, last := c.s, len(m.ids), len(c.nodes), hop == c.s.c.Hops-1
	if err := s.expand(b.Epoch, b.Step, hop, m, s.numbers, &c.nodes); err != nil {
		return err
	}
	e, k := &m.hops[hop], &m.coop[hop]
	c.question(e, dst, known)
	s.yield()
	for r := range c.across {
		c.across[r].clear()
	}
	sums := c.p.Sums && !last
	if sums {
		c.cross(e, dst)
		s.yield()
	}
	if err := c.exchange(b, m, e, k, last); err != nil {
		return err
	}
	if sums {
		c.sums(k, dst, hop)
	}
	s.made[hop] = graphops.HostBlock{NumDst: dst, NumSrc: len(k.IDs), SrcIDs: k.IDs}
	return nil
}

// exchange asks the other ranks for the rows of the hop's sources that they own, answers their
// questions, and completes the block.
func (c *Cooperative) exchange(b *Batch, m *memory, e *edges, k *graphops.RankHop, last bool) error {
	if err := c.exchangeQuestions(b); err != nil {
		return err
	}
	k.Reset(c.p.World)
	if err := c.number(m, k); err != nil {
		return err
	}
	c.s.yield()
	if err := c.exchangeAnswers(k, len(m.ids), last); err != nil {
		return err
	}
	h := &k.Halo
	h.Own, h.Most = len(m.ids), 0
	for r := range c.ask {
		h.Most = max(h.Most, c.answers[r].sources)
		if r != c.p.Rank {
			h.From[r] = append(append(h.From[r][:0], c.ask[r].known...), c.answers[r].rows...)
		}
	}
	c.place(m, e, k, c.answers[c.p.Rank].sources)
	h.Others = len(k.IDs) - h.Own
	return nil
}

// inputs expands the farthest hop without the other ranks. This rank's nodes of earlier hops are
// numbered again, by their rows, so all other sources get rows in the order in which this rank's edges
// reach them.
func (c *Cooperative) inputs(b *Batch, m *memory, hop int) error {
	s, k := c.s, &m.coop[hop]
	own := len(m.ids)
	s.numbers.Begin()
	s.numbers.Assign(m.ids)
	if err := s.expand(b.Epoch, b.Step, hop, m, s.numbers, &m.ids); err != nil {
		return err
	}
	k.Halo.Own, k.Halo.Others = own, c.othersAmong(m.ids[own:])
	s.made[hop] = graphops.HostBlock{NumDst: own, NumSrc: len(m.ids), SrcIDs: m.ids[:len(m.ids):len(m.ids)]}
	return nil
}

// othersAmong returns how many of the nodes belong to other ranks.
func (c *Cooperative) othersAmong(nodes []int32) (n int) {
	// Shifting r | -r gives 0 or -1, without a branch that cannot be predicted.
	if rank, world := c.p.Rank, c.p.World; c.p.Owners == nil {
		for _, v := range nodes {
			r := Owner(v, world) - rank
			n -= (r | -r) >> (bits.UintSize - 1)
		}
		return n
	}
	for _, v := range nodes {
		r := c.ownerOf(v) - c.p.Rank
		n -= (r | -r) >> (bits.UintSize - 1)
	}
	return n
}

// begin begins a batch: this rank's seeds are its first nodes.
func (c *Cooperative) begin(m *memory, seeds []int32) error {
	s, nodes := c.s, c.s.g.NumNodes()
	own := c.seeds[:0]
	c.global = c.global[:0]
	if err := (Seeds{IDs: seeds}).Check(nodes); err != nil {
		return err
	}
	for i, v := range seeds {
		if c.ownerOf(v) == c.p.Rank {
			own = append(own, v)
			c.global = append(c.global, int32(i))
		}
	}
	c.seeds = own
	if err := s.seeds(m, Seeds{IDs: own}); err != nil {
		return err
	}
	if m.coop == nil {
		m.coop = make([]graphops.RankHop, s.c.Hops)
	}
	s.rows = s.rows[:0]
	for r := range c.others {
		c.others[r] = c.others[r][:0]
	}
	c.nodes, c.owner, c.row, c.source, c.reached = append(c.nodes[:0], m.ids...), c.owner[:0], c.row[:0], c.source[:0], c.reached[:0]
	c.enrol(c.p.Rank)
	for n := range c.source {
		c.source[n] = int32(n)
	}
	return nil
}

// enrol extends the arrays of the nodes to those that have just been numbered. Their owner is the
// given rank, or their Owner if that is negative.
func (c *Cooperative) enrol(owner int) {
	from, to := len(c.row), len(c.nodes)
	c.owner, c.row = slices.Grow(c.owner, to-from)[:to], slices.Grow(c.row, to-from)[:to]
	c.source, c.reached = slices.Grow(c.source, to-from)[:to], slices.Grow(c.reached, to-from)[:to]
	clear(c.reached[from:])
	sources, owners := c.source[from:], c.owner[from:]
	for i := range sources {
		sources[i] = -1
	}
	if owner < 0 {
		ownersOf(c.p.Owners, c.p.World, c.nodes[from:], owners)
		return
	}
	for i := range owners {
		owners[i] = uint16(owner)
	}
}

// question groups the hop's distinct sources by their owners. The nodes from number known on are new
// to this rank; they get keys. The loops over edges and nodes have no branch that depends on a
// source: which edges are first, who owns a source and which sources are reached again cannot be
// predicted.
func (c *Cooperative) question(e *edges, dst, known int) {
	c.enrol(-1)
	c.keys = resize(c.keys, len(c.nodes)-known+1)
	// The place of the next new node's key is always written to, and counted only if the edge is the
	// first that reaches the node: numbers are in the order of first edges.
	keys, reached, next := c.keys, c.reached, int32(known)
	for d := range dst {
		key := uint64(c.global[d]) << 32
		for _, i := range e.indices[e.indptr[d]:e.indptr[d+1]] {
			reached[i] = 1
			keys[int(next)-known] = key | uint64(next)
			next += 1 + (i-next)>>31
		}
	}
	clear(c.next)
	for _, r := range c.owner[known:] {
		c.next[r]++
	}
	for r := range c.ask {
		q, n := &c.ask[r], c.next[r]
		q.nodes, q.keys = resize(q.nodes, n), resize(q.keys, n)
		c.next[r] = 0
	}
	for i, r := range c.owner[known:] {
		q, n := &c.ask[r], c.next[r]
		q.nodes[n], q.keys[n] = int32(known+i), keys[i]
		c.next[r] = n + 1
	}
	at := 0
	for r := range c.ask {
		q := &c.ask[r]
		q.at, q.known, q.halo = at, q.known[:0], q.halo[:0]
		if r == c.p.Rank {
			continue
		}
		others := c.others[r]
		q.known, q.halo = resize(q.known, len(others)+1), resize(q.halo, len(others)+1)
		n := 0
		for _, i := range others {
			q.known[n], q.halo[n] = c.row[i], i
			n += int(reached[i])
			reached[i] = 0
		}
		for _, i := range q.nodes {
			reached[i] = 0
		}
		q.known, q.halo = q.known[:n], append(q.halo[:n], q.nodes...)
		c.others[r] = append(others, q.nodes...)
		at += len(q.halo)
	}
}

// ownerOf returns the rank that owns a node.
func (c *Cooperative) ownerOf(v int32) int {
	if c.p.Owners == nil {
		return Owner(v, c.p.World)
	}
	return c.p.Owners.Owner(v, c.p.World)
}

// number gives this rank's new nodes their rows, in the order of their first edges in the whole
// batch, and makes the lists of rows that the other ranks read.
func (c *Cooperative) number(m *memory, k *graphops.RankHop) error {
	all, known := 0, len(c.nodes)
	for r := range c.asked {
		q, to := &c.asked[r], &k.Halo.To[r]
		if r == c.p.Rank {
			q.known, q.nodes, q.keys = nil, c.ask[r].nodes, c.ask[r].keys
			*to = resize(*to, len(q.nodes)) // emptied below
		} else {
			c.nodes = c.s.numbers.Number(c.nodes, q.nodes)
			*to = resize(*to, len(q.known)+len(q.nodes))
			copy(*to, q.known)
			k.Halo.At[r] = q.at
		}
		all += len(q.nodes)
	}
	c.enrol(c.p.Rank)
	for r := range c.asked {
		for _, n := range c.asked[r].nodes {
			if r != c.p.Rank && int(n) < known && int(c.owner[n]) != c.p.Rank {
				return fmt.Errorf("sample: rank %d asked rank %d for node %d, which rank %d owns; all ranks must have the same Owners", r, c.p.Rank, c.nodes[n], c.owner[n])
			}
		}
	}
	first := len(m.ids)
	m.ids = slices.Grow(m.ids, all+1)
	c.fresh = resize(c.fresh, all+1)
	ids, fresh, source, next := m.ids[:first+all+1], c.fresh, c.source, first
	c.merge(func(r, from, to int) {
		q := &c.asked[r]
		nodes := q.nodes[from:to]
		keys, out := q.keys[from:to], k.Halo.To[r][len(q.known)+from:]
		keys, out = keys[:len(nodes)], out[:len(nodes)]
		for i, n := range nodes {
			row := source[n]
			isNew := row >> 31 // all ones or 0
			if isNew != 0 {
				row = int32(next) // a conditional move
			}
			// The place of the next new node is always written to, and counted only if the node is new.
			ids[next], fresh[next-first] = c.nodes[n], keys[i]
			next -= int(isNew)
			source[n], out[i] = row, row
		}
	})
	m.ids, c.fresh = ids[:next], c.fresh[:next-first]
	k.Halo.To[c.p.Rank] = k.Halo.To[c.p.Rank][:0]
	return nil
}

// merge calls visit for the questions of all ranks in the order of their keys: for nodes from to to-1
// of rank r's, which follow one another. Equal keys cannot be, because an edge has one destination.
func (c *Cooperative) merge(visit func(r, from, to int)) {
	clear(c.next)
	for {
		first, key, other := -1, uint64(math.MaxUint64), uint64(math.MaxUint64)
		for r := range c.asked {
			if n := c.next[r]; n < len(c.asked[r].keys) {
				if k := c.asked[r].keys[n]; k < key {
					first, key, other = r, k, key
				} else {
					other = min(other, k)
				}
			}
		}
		if first < 0 {
			return
		}
		keys, from := c.asked[first].keys, c.next[first]
		to := from + 1
		for to < len(keys) && keys[to] < other {
			to++
		}
		visit(first, from, to)
		c.next[first] = to
	}
}

// place lists the ids of the block's sources, which are so many, and turns the edges' sources into
// source rows.
func (c *Cooperative) place(m *memory, e *edges, k *graphops.RankHop, sources int) {
	k.IDs = resize(k.IDs, sources)
	at := copy(k.IDs, m.ids)
	for r := range c.ask {
		q := &c.ask[r]
		if r == c.p.Rank {
			continue
		}
		ids := k.IDs[at:][:len(q.halo)]
		for i, n := range q.halo {
			ids[i], c.source[n] = c.nodes[n], int32(at+i)
		}
		at += len(ids)
	}
	source := c.source
	for i, n := range e.indices {
		e.indices[i] = source[n]
	}
}

// inAll appends the rows, in the batch of all ranks, of the nodes that this rank has reached at
// this hop; all is the number of nodes before it, and of those after it.
func (c *Cooperative) inAll(all int) int {
	clear(c.next)
	for i, key := range c.fresh {
		row := all + i
		for r := range c.answers {
			if r == c.p.Rank {
				continue
			}
			keys, n := c.answers[r].fresh, c.next[r]
			for n < len(keys) && keys[n] < key {
				n++
			}
			c.next[r] = n
			row += n
		}
		c.global = append(c.global, int32(row))
	}
	for r := range c.answers {
		all += len(c.answers[r].fresh)
	}
	return all
}
