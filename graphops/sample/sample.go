// Package sample draws mini-batches from a graph by neighbour sampling.
//
// # Basics
//
// A [Sampler] expands seed nodes hop by hop: at each hop every node reached so far picks some of
// its in-edges, with fresh draws, and the sources of those edges are reached too. The result is a
// [Batch]: one [graphops.Block] per hop, the farthest first, because layers compute in that order.
//
//	s, err := sample.New(g, sample.Config{Picker: sample.Fanouts{15, 10, 5}, Seed: 1})
//	ids := sample.EpochOrder(1, epoch, train)
//	b, err := s.Sample(epoch, step, ids[lo:hi])
//
// A [Picker] chooses the edges of one destination: [Fanouts] picks uniformly without replacement,
// [Weighted] by edge weights, and you can implement your own. A [FrontierPicker] sees all
// destinations of a hop at once (layer-wise importance sampling).
//
// # Determinism
//
// A pick is a function of (seed, epoch, step, hop, node) and of the picker alone: it does not
// depend on the other seeds of the batch, on threads, on workers or on the device. The union of
// several ranks' picks for their shares of a batch therefore equals one rank's picks for the whole
// batch, and [Digest] has the same value. This does not hold for a FrontierPicker.
//
// # Divided graphs
//
// A [Divided] sampler has no graph: at each hop it asks the owners of the nodes for the edges that
// these take, and an [Answerer] picks them where they are. Its batches are those of a Sampler over
// the whole graph, bit for bit.
//
// # Caveats
//
// Nodes are de-duplicated per call: ranks that share a batch reach some nodes twice. A Sampler is
// for one goroutine; it uses several inside.
//
// Source: W. Hamilton, R. Ying, J. Leskovec, "Inductive representation learning
// on large graphs", NeurIPS 2017, algorithm 2. Blocks are those of DGL's message
// flow graphs; the order of the fanouts is PyG's.
package sample

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// The limits set by the counter layout of package philox.
const (
	// MaxHops is the largest number of hops: a hop has 8 bits of the counter.
	MaxHops = 1 << 8
	// MaxEpochs is the number of epochs: an epoch has 20 bits of the counter.
	MaxEpochs = 1 << 20
)

// Purpose is what the draws of a sampler are for. Samplers of different purposes draw
// independently of each other with the same seed.
type Purpose uint32

// The purposes. Their values are part of the random numbers' layout.
const (
	Training   = Purpose(philox.Sample)
	Evaluation = Purpose(philox.Evaluate)
	User       = Purpose(philox.User) // programs of one's own
)

// Config configures a [Sampler]. One of Picker and Frontier is required.
type Config struct {
	Picker   Picker
	Frontier FrontierPicker
	// Hops is the number of hops. 0 means the value of the picker's method Hops() int; it is
	// required for a picker without that method.
	Hops int
	// Seed is the key of all draws.
	Seed uint64
	// Purpose separates the draws of training, evaluation and other uses. The zero value means
	// [Training].
	Purpose Purpose
	// Threads is the number of concurrent goroutines that pick; 0 means GOMAXPROCS. The result does
	// not depend on it.
	Threads int
	// Weights are weights of the graph's edges by CSC position, used instead of the graph's own.
	// Blocks carry the weights of their edges, and [Weighted] picks by them.
	Weights []float32
	// Disjoint gives each seed a tree of its own: a node that several seeds reach has a row for each of them, which picks
	// for it by draws of its own. Seeds may then be equal, and may have times; see [Seeds]. A batch has more rows, and
	// no [FrontierPicker], [StepPicker], [Cooperative] sampler or device samples so.
	Disjoint bool
	// AsOf says what seeds with times see of the graph and take of that.
	AsOf AsOf
	// Transpose makes the transposes of the blocks, which backward passes need, during sampling and
	// in reused memory: see [graphops.Block.Transposed]. The farthest block is transposed only if
	// TransposeInput is set, because the gradient of the input is rarely needed.
	Transpose, TransposeInput bool
}

// Sampler samples batches from one graph. It keeps tables and buffers between batches, so it is for
// one goroutine at a time: a second concurrent call of Sample returns an error. The caller owns the
// batches.
type Sampler struct {
	g       *graphops.Graph // nil if the graph is divided
	nodes   int
	c       Config
	name    string // the picker's type
	picker  Picker // c.Picker, or that of a step
	step    step
	numbers graphops.Numbering
	trees   trees
	inTime  timeline
	hint    int // number of nodes that the last batch reached
	busy    atomic.Bool
	yields  bool // to other goroutines, often

	x       expansion
	scratch []*scratch // one per worker
	rows    []inEdges  // of the batch's nodes, by row
	chunks  []chunk
	made    []graphops.HostBlock
	levels  levels  // of a Labor
	spans   []span  // of a frontier picker
	all     []int32 // its picks

	mu   sync.Mutex
	free []*memory
}

// New returns a sampler over g. It allocates O(nodes) memory for graphs of up to 2^23 nodes and
// O(batch) beyond. It returns an error for a fanout below -1, a missing picker or a missing number
// of hops.
//
// An edge of weight 0 is never sampled, by whatever picker: the sampler's graph, which its blocks have too, is
// [graphops.Graph.WithoutZeroWeights]. Config.Weights count here too.
func New(g *graphops.Graph, c Config) (*Sampler, error) {
	if g == nil || len(g.Indptr) == 0 {
		return nil, errors.New("sample: the graph is missing: it has no indptr, although even a graph without nodes has one")
	}
	if c.Weights != nil {
		if len(c.Weights) != len(g.Indices) {
			return nil, fmt.Errorf("sample: there are %d edge weights but the graph has %d edges; give one for each, by CSC position", len(c.Weights), len(g.Indices))
		}
		g = g.WithEdgeWeights(c.Weights)
	}
	g, _ = g.WithoutZeroWeights()
	name, err := c.complete()
	if err != nil {
		return nil, err
	}
	if needsWeights(c.Picker) && g.EdgeWeights == nil && len(g.Indices) > 0 {
		return nil, errors.New("sample: sample.Weighted needs edge weights, but the graph has none; set Config.Weights, one for each edge by CSC position, or take sample.Fanouts")
	}
	s := newSampler(g.NumNodes(), c, name)
	s.g = g
	s.x.count, s.x.pick, s.x.draw = s.countChunk, s.pickChunks, s.drawChunks
	return s, nil
}

// newSampler returns a sampler without a graph.
func newSampler(nodes int, c Config, name string) *Sampler {
	s := &Sampler{nodes: nodes, c: c, name: name, picker: c.Picker, made: make([]graphops.HostBlock, c.Hops)}
	if !c.Disjoint {
		s.numbers = graphops.NewNumbering(nodes)
	}
	return s
}

// complete checks a configuration, sets what its zero values mean, and returns the picker's type.
func (c *Config) complete() (name string, err error) {
	var picker any
	switch {
	case c.Picker != nil && c.Frontier != nil:
		return "", errors.New("sample: a sampler takes a Picker or a FrontierPicker, not both")
	case c.Picker != nil:
		picker = c.Picker
	case c.Frontier != nil:
		picker = c.Frontier
	default:
		return "", errors.New("sample: the sampler has no picker; sample.Fanouts{15, 10, 5} is one for three hops")
	}
	name = fmt.Sprintf("%T", picker)
	if h, ok := picker.(interface{ Hops() int }); ok {
		switch n := h.Hops(); {
		case n == 0: // it does not know
		case c.Hops == 0:
			c.Hops = n
		case n < c.Hops:
			return "", fmt.Errorf("sample: Config.Hops is %d, but %s has %d hops", c.Hops, name, n)
		}
	}
	if c.Hops < 1 || c.Hops > MaxHops {
		return "", fmt.Errorf("sample: %s samples %d hops, but a batch has 1 to %d; set Hops, or one fanout for each hop", name, c.Hops, MaxHops)
	}
	if err := CheckPicker(picker); err != nil {
		return "", err
	}
	if c.Frontier != nil || isStepPicker(c.Picker) {
		if err := c.checkDisjoint("a "+name, "it picks for the nodes of all seeds together"); err != nil {
			return "", err
		}
	}
	if err := c.AsOf.check(c); err != nil {
		return "", err
	}
	switch c.Purpose {
	case 0:
		c.Purpose = Training
	case Training, Evaluation, User:
	default:
		return "", fmt.Errorf("sample: purpose %d is not for samplers; use Training, Evaluation or User", c.Purpose)
	}
	return name, nil
}

// Hops is the number of hops, which is the number of blocks of each batch.
func (s *Sampler) Hops() int { return s.c.Hops }

// Sample draws the batch of the given seeds, which are a step's seeds or one rank's share of them.
// Seeds are distinct unless their trees are disjoint (Config.Disjoint). The list may be empty; then all blocks have 0 rows.
//
// An error names the seed that is out of range or repeated, or is a [*PickError]. A fault in a
// mapped graph panics again, so that the caller's guard can name the file. The sampler stays usable
// after any error.
//
// Cost: O(picked edges), each with one random access to the graph and one to the table of numbers.
// Numbering runs on one thread while the others pick, and is about a third of the total. The memory
// of the result is fresh unless a batch was released (see [Batch.Release]); then only the Batch
// itself is allocated.
func (s *Sampler) Sample(epoch, step int, seeds Seeds) (*Batch, error) {
	if err := s.enter(epoch, step); err != nil {
		return nil, err
	}
	defer s.busy.Store(false)
	if err := s.c.checkTimes(seeds, s.g.EdgeShape()); err != nil {
		return nil, err
	}
	if seeds.Times != nil {
		if err := s.inTime.make(s.g, &s.c); err != nil {
			return nil, err
		}
	}
	if err := s.beginStep(epoch, step, seeds); err != nil {
		return nil, err
	}
	m := s.memory()
	b := &Batch{Epoch: epoch, Step: step, owner: s, mem: m}
	if err := s.sample(b, seeds); err != nil {
		s.keep(m)
		return nil, err
	}
	return b, nil
}

// enter checks the position of a batch and takes the sampler for one goroutine.
func (s *Sampler) enter(epoch, step int) error {
	if epoch < 0 || epoch >= MaxEpochs || step < 0 || int64(step) > math.MaxUint32 {
		return fmt.Errorf("sample: epoch %d, step %d is out of range: epochs are 0 to %d, steps 0 to 2^32-1", epoch, step, MaxEpochs-1)
	}
	if !s.busy.CompareAndSwap(false, true) {
		return errors.New("sample: two goroutines used one sampler at the same time; make one sampler for each")
	}
	return nil
}

func (s *Sampler) sample(b *Batch, seeds Seeds) error {
	m, hops := b.mem, s.c.Hops
	if err := s.seeds(m, seeds); err != nil {
		return err
	}
	s.rows = s.rows[:0]
	for hop := range hops {
		e := &m.hops[hop]
		dst := len(m.ids)
		if err := s.expand(b.Epoch, b.Step, hop, m, s.numbers, &m.ids); err != nil {
			return err
		}
		s.made[hop] = graphops.HostBlock{
			NumDst: dst, NumSrc: len(m.ids), Level: hop, Graph: s.g, AsOf: seeds.Times != nil,
			Indptr: e.indptr, Indices: e.indices, EdgePos: e.edgePos, Weights: e.weights,
		}
	}
	s.close(b, seeds)
	return nil
}

// close ends a batch whose hops are in s.made.
func (s *Sampler) close(b *Batch, seeds Seeds) {
	m, n := b.mem, seeds.Len()
	s.hint = len(m.ids)
	b.Seeds = m.ids[:n:n]
	if s.c.Disjoint {
		b.Trees = m.trees
	}
	if seeds.Times != nil {
		m.times = append(resize(m.times, 0), seeds.Times...)
		b.Times = m.times
		b.hidden = b.hidden[:0]
		for hop := range s.made {
			b.hidden = append(b.hidden, m.hops[hop].hidden)
		}
	}
	// Nodes keep their row from hop to hop, so every level's ids are a prefix of the last level's.
	for hop := range s.made {
		h := &s.made[hop]
		h.SrcIDs = m.ids[:h.NumSrc:h.NumSrc]
		if b.Times != nil {
			h.Trees, h.TreeTimes = m.trees[:h.NumDst:h.NumDst], b.Times
		}
	}
	s.finish(b)
}

// finish makes the blocks of a batch from their arrays.
func (s *Sampler) finish(b *Batch) {
	m, hops := b.mem, s.c.Hops
	b.Blocks = m.blocks[:hops:hops]
	for hop := range hops {
		k := &m.structs[hop]
		k.SetHost(s.made[hop])
		if s.c.Transpose && hop < hops-1 || s.c.TransposeInput && hop == hops-1 {
			t := &m.hops[hop].transposed
			if h := k.Halo; h != nil && h.Sums != nil {
				k = h.Sums.Block // most layers need no other
			}
			k.Transpose(t, s.c.Threads)
		}
	}
}

// seeds numbers the seeds: they become the first rows of m.ids.
func (s *Sampler) seeds(m *memory, seeds Seeds) error {
	if err := seeds.Check(s.nodes); err != nil {
		return err
	}
	s.trees.plant(&s.c, seeds)
	ids := seeds.IDs
	if s.c.Disjoint {
		s.trees.rows.begin(ids, s.c.Threads, s.yield)
		m.ids = append(m.ids[:0], ids...)
		m.trees = m.trees[:0]
		rows := m.seedRows[:0]
		for i := range ids {
			m.trees = append(m.trees, int32(i))
			rows = append(rows, int32(i))
		}
		m.seedRows = rows
		return nil
	}
	s.numbers.Begin()
	rows := append(m.seedRows[:0], ids...)
	m.seedRows = rows
	m.ids = s.numbers.Number(m.ids[:0], rows)
	if len(m.ids) == len(ids) {
		return nil
	}
	for i, r := range rows {
		if int(r) != i {
			return fmt.Errorf("sample: seed %d occurs twice, at positions %d and %d; the seeds of a batch must be distinct, unless their trees are disjoint", ids[i], r, i)
		}
	}
	panic("unreachable: fewer rows than seeds, and every seed has a row of its own")
}

// memory returns a released batch's memory, or fresh memory.
func (s *Sampler) memory() *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		m := s.free[n-1]
		s.free = s.free[:n-1]
		return m
	}
	// ids is never nil: a block with nil SrcIDs would mean that row s is node s.
	m := &memory{ids: make([]int32, 0, s.hint+s.hint/8+1), hops: make([]edges, s.c.Hops), structs: make([]graphops.Block, s.c.Hops)}
	if s.c.Disjoint { // nil would mean that trees are not disjoint
		m.trees = make([]int32, 0, cap(m.ids))
	}
	for hop := range m.structs {
		m.blocks = append(m.blocks, &m.structs[s.c.Hops-1-hop])
	}
	return m
}

func (s *Sampler) keep(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, m)
}
