package sample

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// Peers connects the samplers of the ranks that expand a batch together.
type Peers struct {
	Rank, World int
	// Owners says which rank owns each node, equally on all ranks; nil is the hash [Owner].
	Owners Owners
	// AllToAll sends send[r] to rank r and returns what each rank sent to this one, by rank. All
	// ranks call it, and each waits for the others.
	AllToAll func(send [][]byte) ([][]byte, error)
}

// Cooperative samples batches together with the samplers of other ranks: each node of a batch has
// one owner (see [Owners]), which picks the node's neighbours once for all ranks.
//
// The batches of all ranks together are the batch that one [Sampler] draws for the same seeds: the
// same edges at each hop. A rank's batch holds the seeds and the destinations that it owns, in
// their order in that batch. The sources of its edges that other ranks own follow its own sources
// in each block, which therefore has a [graphops.Halo]: before a layer computes on the block, their
// rows must be fetched from their owners.
//
// Hop by hop, a rank picks for its nodes, sends the ids of the sources to their owners, and
// receives the sources' rows there. An owner numbers new nodes in the order in which the edges of
// the whole batch first reach them. Cost for each hop: two exchanges, of 12 bytes for each distinct
// source of a rank and of 4 bytes back, and for all hops but the last 8 bytes for each new node to
// each rank.
//
// Source: M. F. Balin, D. LaSalle, Ü. V. Çatalyürek, "Cooperative minibatching in graph neural
// networks", TMLR 2025, arXiv:2310.12403.
type Cooperative struct {
	s *Sampler
	p Peers

	seeds   []int32   // that this rank owns
	sources numbering // of one hop
	reached []int32   // the hop's distinct sources, in the order of their first edges
	owner   []uint16  // of each
	row     []int32   // the source row of each in the block
	global  []int32   // the rows of this rank's nodes in the batch of all ranks
	ask     []question
	asked   []question // by the other ranks
	answers []answer
	next    []int
	rowOf   []int32

	// Of all questions, in the order of their edges.
	merged    []int32 // ids, then rows
	keys      []uint64
	stretches []stretch

	fresh []uint64 // keys of this rank's new nodes
	send  [][]byte
}

// stretch is a number of questions of one rank that follow one another.
type stretch struct{ rank, n int }

// MaxPeers is the largest number of ranks that expand a batch together.
const MaxPeers = 1 << 16

// question is one rank's sources at a hop that one rank owns.
type question struct {
	at   int // the place of the rows in the asking rank's halo
	ids  []int32
	keys []uint64 // places of the first edges in the whole batch, ascending
}

// answer is the reply to a question.
type answer struct {
	sources int // rows of the answering rank's block
	rows    []int32
	fresh   []uint64 // keys of the nodes that the answering rank has reached at this hop, ascending
}

// NewCooperative returns a sampler over g that samples with its peers; all of them have the same
// configuration. A [FrontierPicker] is refused, because no rank has the whole frontier. Ranks with
// Owners compare them here, over all nodes, so all ranks call it.
func NewCooperative(g *graphops.Graph, c Config, p Peers) (*Cooperative, error) {
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
	t := &Cooperative{
		s: s, p: p, sources: newNumbering(g.NumNodes()), ask: make([]question, p.World), asked: make([]question, p.World),
		answers: make([]answer, p.World), next: make([]int, p.World), send: make([][]byte, p.World),
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
func (c *Cooperative) Sample(epoch, step int, seeds []int32) (*Batch, error) {
	if err := c.s.enter(epoch, step); err != nil {
		return nil, err
	}
	defer c.s.busy.Store(false)
	m := c.s.memory()
	b := &Batch{Epoch: epoch, Step: step, owner: c.s, mem: m}
	if err := c.sample(b, seeds); err != nil {
		c.s.keep(m)
		return nil, err
	}
	return b, nil
}

// Leave tells the other ranks that this one samples no more batches of a loop that has more: their
// Sample, or Leave, for the next batch returns. Sample then fails.
func (c *Cooperative) Leave() error {
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
)

func (c *Cooperative) sample(b *Batch, seeds []int32) error {
	s, m, hops := c.s, b.mem, c.s.c.Hops
	nodes := s.g.NumNodes()
	own := c.seeds[:0]
	c.global = c.global[:0]
	for i, v := range seeds {
		if uint(v) >= uint(nodes) {
			return fmt.Errorf("sample: seed %d at position %d is not a node: the graph's nodes are 0 to %d", v, i, nodes-1)
		}
		if c.ownerOf(v) == c.p.Rank {
			own = append(own, v)
			c.global = append(c.global, int32(i))
		}
	}
	c.seeds = own
	if err := s.seeds(m, own); err != nil {
		return err
	}
	if m.coop == nil {
		m.coop = make([]coopHop, hops)
	}
	s.rows = s.rows[:0]
	all := len(seeds) // nodes that the batch of all ranks has reached
	for hop := range hops {
		dst := len(m.ids)
		c.sources.begin()
		c.reached = c.reached[:0]
		if err := s.expand(b.Epoch, b.Step, hop, m, c.sources, &c.reached); err != nil {
			return err
		}
		e, k := &m.hops[hop], &m.coop[hop]
		c.questions(e, dst)
		if err := c.exchangeQuestions(b); err != nil {
			return err
		}
		c.number(m, k, hop == hops-1)
		if err := c.exchangeAnswers(k, len(m.ids)); err != nil {
			return err
		}
		c.place(m, e, k)
		if hop < hops-1 {
			all = c.inAll(all)
		}
		s.made[hop] = graphops.HostBlock{
			NumDst: dst, NumSrc: len(k.ids), Level: hop, Graph: s.g, SrcIDs: k.ids, Halo: &k.halo,
			Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights,
		}
	}
	s.hint = len(m.ids)
	b.Seeds = m.ids[:len(own):len(own)]
	s.finish(b)
	return nil
}

// questions groups the hop's distinct sources by their owners, with the places of their first
// edges. Its loops have no branch that depends on a source: which edges are first, and who owns a
// source, cannot be predicted.
func (c *Cooperative) questions(e *edges, dst int) {
	for r := range c.ask {
		c.ask[r].ids, c.ask[r].keys = c.ask[r].ids[:0], c.ask[r].keys[:0]
	}
	c.keys = resize(c.keys, len(c.reached)+1)
	next := 0
	for d := range dst {
		place := uint64(c.global[d]) << 32
		for _, i := range e.indices[e.indptr[d]:e.indptr[d+1]] {
			c.keys[next] = place
			first := 0
			if int(i) == next { // rows are in the order of first edges
				first = 1
			}
			next += first
			place++
		}
	}
	c.owner = resize(c.owner, len(c.reached))
	for i, v := range c.reached {
		r := c.ownerOf(v)
		c.owner[i] = uint16(r)
		q := &c.ask[r]
		q.ids, q.keys = append(q.ids, v), append(q.keys, c.keys[i])
	}
	at := 0
	for r := range c.ask {
		c.ask[r].at = at
		if r != c.p.Rank {
			at += len(c.ask[r].ids)
		}
	}
}

// ownerOf returns the rank that owns a node.
func (c *Cooperative) ownerOf(v int32) int {
	if c.p.Owners == nil {
		return Owner(v, c.p.World)
	}
	return c.p.Owners.Owner(v, c.p.World)
}

// exchangeQuestions sends the questions and receives those of the other ranks.
func (c *Cooperative) exchangeQuestions(b *Batch) error {
	for r := range c.send {
		q, out := &c.ask[r], c.send[r][:0]
		if r != c.p.Rank {
			out = slices.Grow(out, 20+12*len(q.ids))
			for _, v := range [...]uint32{asking, uint32(b.Epoch), uint32(b.Step), uint32(q.at), uint32(len(q.ids))} {
				out = binary.LittleEndian.AppendUint32(out, v)
			}
			out = appendWords(out, q.ids)
			out = appendKeys(out, q.keys)
		}
		c.send[r] = out
	}
	got, err := c.p.AllToAll(c.send)
	if err != nil {
		return err
	}
	for r := range c.asked {
		if r == c.p.Rank {
			c.asked[r] = c.ask[r]
			continue
		}
		in := message{rest: got[r]}
		if in.word() == leaving {
			return fmt.Errorf("sample: rank %d has left the loop over batches before step %d; all ranks must leave it at the same step", r, b.Step)
		}
		if epoch, step := in.word(), in.word(); in.short || epoch != uint32(b.Epoch) || step != uint32(b.Step) {
			return fmt.Errorf("sample: rank %d samples epoch %d, step %d, and rank %d another batch; all ranks must sample the same batches", c.p.Rank, b.Epoch, b.Step, r)
		}
		q := &c.asked[r]
		q.at = int(in.word())
		n := int(in.word())
		q.ids = in.words(q.ids[:0], n)
		q.keys = in.keys(q.keys[:0], n)
		if err := in.end(r); err != nil {
			return err
		}
		for _, v := range q.ids {
			if uint(v) >= uint(c.s.g.NumNodes()) {
				return fmt.Errorf("sample: rank %d asked for node %d, but the graph's nodes are 0 to %d", r, v, c.s.g.NumNodes()-1)
			}
		}
	}
	return nil
}

// number gives the nodes of all questions their rows, in the order of their first edges in the
// whole batch, and notes the rows for the answers, and for all hops but the last the keys of new nodes.
func (c *Cooperative) number(m *memory, k *coopHop, last bool) {
	c.merge()
	row := int32(len(m.ids))
	m.ids = c.s.numbers.number(m.ids, c.merged)
	k.to(c.p.World)
	at := 0
	for _, s := range c.stretches {
		k.answers[s.rank] = append(k.answers[s.rank], c.merged[at:at+s.n]...)
		at += s.n
	}
	c.fresh = c.fresh[:0]
	if last {
		return
	}
	for i, v := range c.merged {
		if v == row {
			c.fresh = append(c.fresh, c.keys[i])
			row++
		}
	}
}

// merge puts the questions of all ranks into the order of their keys. Equal keys cannot be, because
// an edge has one destination; a destination's questions are from one rank and follow one another.
func (c *Cooperative) merge() {
	clear(c.next)
	c.merged, c.keys, c.stretches = c.merged[:0], c.keys[:0], c.stretches[:0]
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
		q, from := &c.asked[first], c.next[first]
		to := from + 1
		for to < len(q.keys) && q.keys[to] < other {
			to++
		}
		c.merged, c.keys = append(c.merged, q.ids[from:to]...), append(c.keys, q.keys[from:to]...)
		c.stretches = append(c.stretches, stretch{first, to - from})
		c.next[first] = to
	}
}

// exchangeAnswers sends the rows that were asked for and receives those of this rank's sources.
func (c *Cooperative) exchangeAnswers(k *coopHop, own int) error {
	sources := own
	for r := range c.ask {
		if r != c.p.Rank {
			sources += len(c.ask[r].ids)
		}
	}
	for r := range c.send {
		out := c.send[r][:0]
		if r != c.p.Rank {
			out = slices.Grow(out, 12+4*len(k.answers[r])+8*len(c.fresh))
			for _, v := range [...]int{sources, len(k.answers[r]), len(c.fresh)} {
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			}
			out = appendWords(out, k.answers[r])
			out = appendKeys(out, c.fresh)
		}
		c.send[r] = out
	}
	got, err := c.p.AllToAll(c.send)
	if err != nil {
		return err
	}
	for r := range c.answers {
		a := &c.answers[r]
		if r == c.p.Rank {
			a.sources, a.rows, a.fresh = sources, append(a.rows[:0], k.answers[r]...), append(a.fresh[:0], c.fresh...)
			continue
		}
		in := message{rest: got[r]}
		a.sources = int(in.word())
		n, keys := int(in.word()), int(in.word())
		a.rows = in.words(a.rows[:0], n)
		a.fresh = in.keys(a.fresh[:0], keys)
		if err := in.end(r); err != nil {
			return err
		}
		if n != len(c.ask[r].ids) {
			return fmt.Errorf("sample: rank %d answered %d of %d questions", r, n, len(c.ask[r].ids))
		}
	}
	return nil
}

// place makes the block's source ids and its halo, and turns the edges' sources into source rows.
func (c *Cooperative) place(m *memory, e *edges, k *coopHop) {
	h, me := &k.halo, c.p.Rank
	h.Own, h.Most = len(m.ids), 0
	k.ids = append(resize(k.ids, 0), m.ids...)
	for r := range c.ask {
		h.Most = max(h.Most, c.answers[r].sources)
		h.From[r], h.To[r], h.At[r] = append(h.From[r][:0], c.answers[r].rows...), k.answers[r], c.asked[r].at
		if r != me {
			k.ids = append(k.ids, c.ask[r].ids...)
		}
	}
	// The source rows by owner, and then by number.
	c.rowOf, c.row = c.rowOf[:0], resize(c.row, len(c.reached))
	for r := range c.ask {
		c.next[r] = len(c.rowOf)
		if r == me {
			c.rowOf = append(c.rowOf, h.From[me]...)
			continue
		}
		for n := range c.ask[r].ids {
			c.rowOf = append(c.rowOf, int32(h.Own+c.ask[r].at+n))
		}
	}
	row, next := c.row, c.next
	for i, r := range c.owner[:len(row)] {
		row[i] = c.rowOf[next[r]]
		next[r]++
	}
	h.From[me], h.To[me] = h.From[me][:0], h.To[me][:0]
	for i, n := range e.indices {
		e.indices[i] = row[n]
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

// coopHop is the part of a hop's block that only a cooperative batch has.
type coopHop struct {
	ids     []int32 // of the sources
	halo    graphops.Halo
	answers [][]int32 // rows that each rank asked for
}

// to empties the answers.
func (k *coopHop) to(world int) {
	if k.answers == nil {
		k.answers = make([][]int32, world)
		k.halo.From, k.halo.To, k.halo.At = make([][]int32, world), make([][]int32, world), make([]int, world)
	}
	for r := range k.answers {
		k.answers[r] = k.answers[r][:0]
	}
}

func appendWords(out []byte, words []int32) []byte {
	at := len(out)
	out = slices.Grow(out, 4*len(words))[:at+4*len(words)]
	for i, v := range words {
		binary.LittleEndian.PutUint32(out[at+4*i:], uint32(v))
	}
	return out
}

func appendKeys(out []byte, keys []uint64) []byte {
	at := len(out)
	out = slices.Grow(out, 8*len(keys))[:at+8*len(keys)]
	for i, v := range keys {
		binary.LittleEndian.PutUint64(out[at+8*i:], v)
	}
	return out
}

// message reads a message from another rank; short is set if it ended early.
type message struct {
	rest  []byte
	short bool
}

// take returns the next n bytes, or nil if the message has fewer.
func (m *message) take(n int) []byte {
	if n < 0 || len(m.rest) < n {
		m.short, m.rest = true, nil
		return nil
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b
}

func (m *message) word() uint32 {
	if b := m.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (m *message) words(out []int32, n int) []int32 {
	b := m.take(4 * n)
	out = resize(out, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func (m *message) keys(out []uint64, n int) []uint64 {
	b := m.take(8 * n)
	out = resize(out, len(b)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// end returns an error if the message was not read exactly.
func (m *message) end(rank int) error {
	if m.short || len(m.rest) > 0 {
		return fmt.Errorf("sample: the message of rank %d has the wrong length; all ranks must run the same program", rank)
	}
	return nil
}
