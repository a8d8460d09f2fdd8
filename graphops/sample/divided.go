package sample

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops"
)

// Division describes a graph whose edges are divided among owners, to a [Divided] sampler.
type Division struct {
	// Nodes is the number of nodes of the whole graph, and Edges what each of its edges has.
	Nodes int
	Edges graphops.EdgeShape
	// Owners is the number of owners. Node v belongs to owner OwnerOf[Part[v]], or OwnerOf[0] if Part
	// is nil; the owner has its in-edges.
	Owners  int
	Part    []int32
	OwnerOf []int
	// Ask sends one request to each owner, by owner, and returns their replies, by owner. A request
	// may have no nodes; then its reply is not read. Requests and replies are valid until the next call.
	Ask func(requests []HopRequest) ([]HopReply, error)
	// Degrees gives the degrees of the whole graph to the layers that need them; may be nil.
	Degrees graphops.Degrees
}

// MaxOwners is the largest number of owners of a graph's parts.
const MaxOwners = 1 << 16

// Divided is a sampler without a graph. It asks the owners of nodes for the edges that these take,
// one request to each owner and hop. Its batches are those of a [Sampler] over the whole graph, bit
// for bit: ids, edges, positions, their order, and the weights, features and times of edges. Their
// blocks have no Graph, but Degrees.
//
// Like a Sampler, it is for one goroutine at a time. Cost: per hop, one exchange of 4 bytes for each
// node reached so far, and of 12 bytes back for each of these nodes and 8 for each of their edges,
// with what the edge has. Disjoint trees take 4 bytes more for each node, and the seeds for each owner.
type Divided struct {
	s *Sampler
	d Division

	requests []HopRequest
	part     []int32   // of each node reached
	nodes    [][]int32 // the nodes reached, by part, in the order in which they were reached
	trees    [][]int32 // their trees, if trees are disjoint
	next     []cursor  // by part: the next node of its owner's reply
	ends     []int     // by owner: edges of the parts so far
}

// cursor is a place in a reply.
type cursor struct{ node, edge int }

// NewDivided returns a sampler of a divided graph. A [FrontierPicker] is refused, because it needs
// the whole graph. Config.Weights must be nil: the owners of edges have their weights.
func NewDivided(d Division, c Config) (*Divided, error) {
	switch {
	case isStepPicker(c.Picker):
		return nil, fmt.Errorf("sample: a %T needs the whole graph, but the graph is divided; use another Picker, or give each worker the whole topology", c.Picker)
	case c.Frontier != nil:
		return nil, errors.New("sample: a FrontierPicker needs the whole graph, but the graph is divided; use a Picker, or give each worker the whole topology")
	case c.Weights != nil:
		return nil, errors.New("sample: Config.Weights are for a whole graph, but the graph is divided; write weights into its parts")
	case d.Nodes < 0 || d.Nodes > math.MaxInt32 || d.Ask == nil:
		return nil, fmt.Errorf("sample: a division of %d nodes cannot be sampled: there are 0 to %d nodes, and Ask reaches their owners", d.Nodes, math.MaxInt32)
	case d.Owners < 1 || d.Owners > MaxOwners || len(d.OwnerOf) == 0 || d.Part == nil && len(d.OwnerOf) != 1 || d.Part != nil && len(d.Part) != d.Nodes:
		return nil, fmt.Errorf("sample: a division has 1 to %d owners, an owner for each part and a part for each of its %d nodes; this one has %d owners, %d parts and parts of %d nodes", MaxOwners, d.Nodes, d.Owners, len(d.OwnerOf), len(d.Part))
	}
	for p, o := range d.OwnerOf {
		if o < 0 || o >= d.Owners {
			return nil, fmt.Errorf("sample: part %d belongs to owner %d, but owners are 0 to %d", p, o, d.Owners-1)
		}
	}
	name, err := c.complete()
	if err != nil {
		return nil, err
	}
	if needsWeights(c.Picker) && !d.Edges.Weighted {
		return nil, errors.New("sample: sample.Weighted needs edge weights, but the divided graph has none; take sample.Fanouts")
	}
	t := &Divided{s: newSampler(d.Nodes, c, name), d: d, requests: make([]HopRequest, d.Owners), nodes: make([][]int32, len(d.OwnerOf)), trees: make([][]int32, len(d.OwnerOf)), next: make([]cursor, len(d.OwnerOf)), ends: make([]int, d.Owners)}
	for o := range t.requests {
		t.requests[o] = HopRequest{Seed: c.Seed, Purpose: t.s.c.Purpose, Picker: pickerName(c.Picker)}
	}
	if err := t.requests[0].check(); err != nil { // the picker's name
		return nil, err
	}
	return t, nil
}

// Hops is the number of hops, which is the number of blocks of each batch.
func (t *Divided) Hops() int { return t.s.c.Hops }

// Sample draws the batch of the given seeds, as [Sampler.Sample] does.
func (t *Divided) Sample(epoch, step int, seeds Seeds) (*Batch, error) {
	s := t.s
	if err := s.enter(epoch, step); err != nil {
		return nil, err
	}
	defer s.busy.Store(false)
	if err := s.c.checkTimes(seeds, t.d.Edges); err != nil {
		return nil, err
	}
	m := s.memory()
	b := &Batch{Epoch: epoch, Step: step, owner: s, mem: m}
	if err := t.sample(b, seeds); err != nil {
		s.keep(m)
		return nil, err
	}
	return b, nil
}

func (t *Divided) sample(b *Batch, seeds Seeds) error {
	s, m := t.s, b.mem
	if err := s.seeds(m, seeds); err != nil {
		return err
	}
	t.part = t.part[:0]
	for p := range t.nodes {
		t.nodes[p], t.trees[p] = t.nodes[p][:0], t.trees[p][:0]
	}
	for o := range t.requests {
		q := &t.requests[o]
		if q.Trees = nil; s.c.Disjoint {
			q.Seeds, q.AsOf, q.NodeTimes = seeds, AsOf{}, false
			if seeds.Times != nil {
				q.AsOf, q.NodeTimes = s.c.AsOf, s.c.AsOf.NodeTimes != nil
				q.AsOf.NodeTimes = nil
			}
		}
	}
	for hop := range s.c.Hops {
		dst := len(m.ids)
		if err := t.ask(b, hop); err != nil {
			return err
		}
		e := &m.hops[hop]
		if s.c.Disjoint {
			m.ids, m.trees = s.trees.rows.number(m.ids, m.trees, e.indptr, e.indices)
		} else {
			m.ids = s.numbers.Number(m.ids, e.indices)
		}
		s.made[hop] = graphops.HostBlock{
			NumDst: dst, NumSrc: len(m.ids), Level: hop, Degrees: t.d.Degrees, AsOf: seeds.Times != nil,
			Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.data.Weights, Edges: e.data,
		}
	}
	s.close(b, seeds)
	return nil
}

// ask asks for the edges of the nodes reached so far, and writes them as the hop's edges, with ids
// of the whole graph as sources.
func (t *Divided) ask(b *Batch, hop int) error {
	m, c := b.mem, &t.s.c
	for o := range t.requests {
		q := &t.requests[o]
		q.Epoch, q.Step, q.Hop, q.Nodes = b.Epoch, b.Step, hop, q.Nodes[:0]
		q.Trees = q.Trees[:0]
		if spec, ok := SpecOf(c.Picker); ok {
			q.Fanout = spec.Fanouts[hop]
		}
	}
	// An owner gets its nodes part after part, because it reads the edges of one part faster than those of many in turn.
	for row := len(t.part); row < len(m.ids); row++ {
		v := m.ids[row]
		part := int32(0)
		if t.d.Part != nil {
			if part = t.d.Part[v]; uint(part) >= uint(len(t.d.OwnerOf)) {
				return fmt.Errorf("sample: the division is damaged: node %d is in part %d, but parts are 0 to %d", v, part, len(t.d.OwnerOf)-1)
			}
		}
		t.part = append(t.part, part)
		t.nodes[part] = append(t.nodes[part], v)
		if c.Disjoint {
			t.trees[part] = append(t.trees[part], m.trees[row])
		}
	}
	for p, nodes := range t.nodes {
		q := &t.requests[t.d.OwnerOf[p]]
		t.next[p].node = len(q.Nodes)
		q.Nodes = append(q.Nodes, nodes...)
		q.Trees = append(q.Trees, t.trees[p]...)
	}
	replies, err := t.d.Ask(t.requests)
	if err != nil {
		return err
	}
	if len(replies) != len(t.requests) {
		return fmt.Errorf("sample: %d requests for hop %d had %d answers", len(t.requests), hop, len(replies))
	}
	edges := 0
	for o := range replies {
		if len(t.requests[o].Nodes) == 0 {
			continue
		}
		if err := t.check(o, &t.requests[o], &replies[o]); err != nil {
			return err
		}
		edges += len(replies[o].Sources)
	}
	t.write(&m.hops[hop], len(m.ids), edges, replies)
	return nil
}

// check refuses a reply that does not fit its request: sizes, sources that are no nodes, positions
// that no edge has.
func (t *Divided) check(owner int, q *HopRequest, r *HopReply) error {
	bad := func(what string, args ...any) error {
		return fmt.Errorf("sample: the answer of owner %d for hop %d %s; both sides must have the same graph and version", owner, q.Hop, fmt.Sprintf(what, args...))
	}
	if len(r.Counts) != len(q.Nodes) || len(r.First) != len(q.Nodes) || len(r.Offsets) != len(r.Sources) {
		return bad("has %d counts and %d positions for %d nodes, and %d offsets for %d edges", len(r.Counts), len(r.First), len(q.Nodes), len(r.Offsets), len(r.Sources))
	}
	if t.s.trees.timed && len(r.Hidden) != len(q.Nodes) {
		return bad("says for %d of %d nodes how many edges their seeds do not see", len(r.Hidden), len(q.Nodes))
	}
	if !r.Edges.Has(t.d.Edges, len(r.Sources)) {
		return bad("has %d edges with %v each, and an edge of this graph has %v", len(r.Sources), r.Edges.Shape(), t.d.Edges)
	}
	total, signs := int64(0), int64(0)
	for i, n := range r.Counts {
		total += int64(n)
		signs |= int64(n) | r.First[i]
	}
	if signs < 0 || total != int64(len(r.Sources)) {
		return bad("counts %d edges for its nodes and has %d", total, len(r.Sources))
	}
	wrong := false
	for i, u := range r.Sources {
		wrong = wrong || uint(u) >= uint(t.d.Nodes) || r.Offsets[i] < 0
	}
	if wrong {
		return bad("has an edge from a node that does not exist, or at a negative position")
	}
	return nil
}

// write merges the replies' edges in the order of the nodes.
func (t *Divided) write(e *edges, nodes, n int, replies []HopReply) {
	e.indptr = resize(e.indptr, nodes+1)
	e.indices, e.edgePos = resize(e.indices, n), resize(e.edgePos, n)
	e.data.SetLen(t.d.Edges, n)
	clear(t.ends)
	for p, o := range t.d.OwnerOf {
		c := &t.next[p]
		if c.edge = t.ends[o]; len(t.nodes[p]) == 0 {
			continue
		}
		for _, k := range replies[o].Counts[c.node:][:len(t.nodes[p])] {
			t.ends[o] += int(k)
		}
	}
	timed := t.s.trees.timed
	if timed {
		e.hidden = resize(e.hidden, nodes)
	}
	at, has := 0, t.d.Edges.Bytes() > 0
	e.indptr[0] = 0
	for i, p := range t.part[:nodes] {
		r, c := &replies[t.d.OwnerOf[p]], &t.next[p]
		from, to := c.edge, c.edge+int(r.Counts[c.node])
		first := r.First[c.node]
		copy(e.indices[at:], r.Sources[from:to])
		if has {
			e.data.CopyRange(at, &r.Edges, from, to)
		}
		for _, k := range r.Offsets[from:to] {
			e.edgePos[at] = first + int64(k)
			at++
		}
		e.indptr[i+1] = int64(at)
		if timed {
			e.hidden[i] = r.Hidden[c.node]
		}
		c.node, c.edge = c.node+1, to
	}
}
