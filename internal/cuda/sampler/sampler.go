// Package sampler samples neighbours on a device. Its batches equal those of package sample, bit
// for bit. The graph is in the device's memory or in pinned memory of the host.
//
//	g, err := store.PutGraph(d, graph, store.Auto, false)
//	s, err := sampler.New(d, g, sampler.Config{Config: sample.Config{Picker: sample.Fanouts{15, 10, 5}, Seed: 1, Transpose: true}})
//	b, err := s.Sample(epoch, step, seeds)
//
// Blocks have their arrays in Block.Dev ([cuda.BlockArrays]), transposes included. Their methods
// copy an array to the host when the host reads it. Later batches copy the same arrays in advance,
// so that they are ready for a program that reads them in every step. In the same way later batches
// have what a program has asked of a hop's block: its block with self-loops, and its edges by source.
//
// # Determinism
//
// Picks and rows are those of [sample.Sampler], for [sample.Fanouts], [sample.Weighted] and
// [sample.Labor] without Poisson: the same numbers decide, and no order of threads does.
//
// # Cost
//
// Seven to nine launches per hop on the device's sampling stream, five to fourteen more with a
// transpose, three to six more with self-loops, and one wait at the end of a batch for its sizes. A hop
// of all in-edges, or one that could have more than 2^24 edges, needs another wait, to allocate memory
// of the right size. Device memory: 4 bytes per node of the graph, and for each edge that a batch can
// have 16 bytes, 20 for a hop of all in-edges, 36 with transposes, and 4 more with weights; for each edge
// of a block with self-loops 12 bytes, 20 with transposes. No memory is allocated once batches repeat in
// size.
package sampler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/cuda/store"
	"github.com/graphnb/graphnb/internal/philox"
)

// Config is the configuration of a [sample.Sampler], restricted to what a device supports: the
// picker is [sample.Fanouts], [sample.Weighted] or [sample.Labor] without Poisson, weights are the graph's own, and Threads is
// ignored.
type Config struct {
	sample.Config
}

// Sampler samples batches on one device. It is for one goroutine at a time; the
// batches may be used and released by others.
type Sampler struct {
	d    *cuda.Device
	g    *store.Graph
	c    Config
	fan  sample.Fanouts
	busy atomic.Bool

	weighted bool
	labor    *sample.Labor // nil unless it is the picker
	through  stream        // the device's sampling stream, or a stream that measures it
	scratch  buffers
	read     *cuda.Pinned // the state, for the host

	mu      sync.Mutex
	free    []*memory
	closed  bool
	want    []bool // by block and kind, what the host read of the batch released last
	wantIDs bool
	// By hop: what programs have read, which all later batches have.
	loops  []bool // the block with self-loops
	turned []bool // the edges by source
}

// New returns a sampler over a graph on its device. It returns the same errors as [sample.New].
func New(d *cuda.Device, g *store.Graph, c Config) (*Sampler, error) {
	if c.Weights != nil {
		return nil, errors.New("sampler: on a device the edge weights are the graph's own: put the graph there with its weights (graph.WithEdgeWeights)")
	}
	if c.Frontier != nil {
		return nil, errors.New("sampler: a frontier picker runs only on the CPU; sample there, or use sample.Fanouts, sample.Weighted or sample.Labor")
	}
	if c.Disjoint {
		return nil, errors.New("sampler: disjoint trees, and seeds with times, are sampled only on the CPU; sample there, or leave Disjoint out")
	}
	s := &Sampler{d: d, g: g, c: c, through: d.Sampling}
	spec, _ := sample.SpecOf(c.Picker)
	if s.fan, s.weighted, s.labor = spec.Fanouts, spec.Weighted, spec.Labor; c.Picker != nil && !Samples(c.Picker) {
		return nil, fmt.Errorf("sampler: a picker of type %T runs only on the CPU; sample there, or use sample.Fanouts, sample.Weighted or sample.Labor with a fixed number of picks", c.Picker)
	}
	// The CPU's sampler checks everything else.
	check, err := sample.New(g.Host, c.Config)
	if err != nil {
		return nil, err
	}
	s.c.Hops = check.Hops()
	s.want, s.loops, s.turned = make([]bool, 2*askedKinds*s.c.Hops), make([]bool, s.c.Hops), make([]bool, s.c.Hops)
	for hop := range s.turned {
		s.turned[hop] = s.c.Transpose && hop < s.c.Hops-1 || s.c.TransposeInput && hop == s.c.Hops-1
	}
	if s.c.Purpose == 0 {
		s.c.Purpose = sample.Training
	}
	for hop, k := range s.fan[:s.c.Hops] {
		draws := k
		if s.weighted {
			draws = 2 * k
		}
		if draws > philox.MaxDraws && s.labor == nil {
			return nil, fmt.Errorf("sampler: fanout %d of hop %d takes more draws than the %d of a node; -1 takes all in-edges", k, hop, philox.MaxDraws)
		}
		if most := d.Info().MaxShared; s.weighted && pickRoom(k) > most {
			return nil, fmt.Errorf("sampler: fanout %d of hop %d is more than the %d that a device picks by weight; -1 takes all in-edges", k, hop, (most-sumBytes)/pickBytes)
		}
	}
	if s.read, err = d.Pin(s.stateBytes()); err != nil {
		return nil, err
	}
	if err := s.need(&s.scratch.table, 4*g.Nodes); err != nil {
		return nil, err
	}
	if err := s.need(&s.scratch.state, s.stateBytes()); err != nil {
		return nil, err
	}
	s.empty()
	return s, nil
}

// Samples reports whether a device has kernels for a picker.
func Samples(p sample.Picker) bool {
	spec, ok := sample.SpecOf(p)
	return ok && (spec.Labor == nil || !spec.Labor.Poisson)
}

var _ sample.Batcher = (*Sampler)(nil)

func (s *Sampler) stateBytes() int64 { return int64(8 * stateWords(s.c.Hops)) }

// empty fills the table with the value that it has before and after each batch.
func (s *Sampler) empty() { s.d.Sampling.Fill32(s.scratch.table.Ptr, emptyWord, s.g.Nodes) }

// Hops is the number of hops, which is the number of blocks of each batch.
func (s *Sampler) Hops() int { return s.c.Hops }

// Sample draws the batch of the given seeds, as [sample.Sampler.Sample] does, with the same errors
// for invalid seeds or a damaged graph; other errors are the device's. When it returns, the batch
// is on the device and ready for every stream. Release frees its memory after the work submitted to
// the compute stream until then.
func (s *Sampler) Sample(epoch, step int, of sample.Seeds) (*sample.Batch, error) {
	seeds := of.IDs
	if of.Times != nil {
		return nil, errors.New("sampler: seeds with times are sampled only on the CPU; sample there, or leave the times out")
	}
	if epoch < 0 || epoch >= sample.MaxEpochs || step < 0 || int64(step) > math.MaxUint32 {
		return nil, fmt.Errorf("sampler: epoch %d, step %d is out of range: epochs are 0 to %d, steps 0 to 2^32-1", epoch, step, sample.MaxEpochs-1)
	}
	for i, v := range seeds {
		if uint64(uint32(v)) >= uint64(s.g.Nodes) {
			return nil, fmt.Errorf("sampler: seed %d at position %d is not a node: the graph's nodes are 0 to %d", v, i, s.g.Nodes-1)
		}
	}
	if !s.busy.CompareAndSwap(false, true) {
		return nil, errors.New("sampler: two goroutines used one sampler at the same time; make one sampler for each")
	}
	defer s.busy.Store(false)
	m, err := s.memory()
	if err != nil {
		return nil, err
	}
	b, err := s.sample(m, epoch, step, seeds)
	if err != nil {
		s.empty() // whatever was done of it
		s.keep(m)
		return nil, err
	}
	return b, nil
}

// bounds are the upper bounds of a hop's sizes that the host knows.
type bounds struct{ destinations, edges int64 }

func (s *Sampler) sample(m *memory, epoch, step int, seeds []int32) (*sample.Batch, error) {
	h := &hops{s: s.through, g: s.g, n: s.c.Hops, weighted: s.weighted, labor: s.labor, seed: s.c.Seed, step: uint32(step)}
	h.m.sharedForPick = min(s.d.Info().MaxShared, 48<<10)
	if err := s.forSeeds(h, m, seeds); err != nil {
		return nil, err
	}
	h.begin(m.seeds.Ptr, len(seeds))
	s.mu.Lock()
	loops, turned := slices.Clone(s.loops), slices.Clone(s.turned)
	s.mu.Unlock()
	most := make([]bounds, s.c.Hops+1)
	most[0].destinations = int64(len(seeds))
	for hop := range s.c.Hops {
		b := &most[hop]
		if err := s.hop(h, m, hop, epoch, b, loops[hop] || turned[hop]); err != nil {
			return nil, err
		}
		most[hop+1].destinations = min(s.g.Nodes, b.destinations+b.edges)
	}
	nodes := most[s.c.Hops].destinations
	for hop := range s.c.Hops {
		if err := s.derive(h, m, hop, most, loops[hop], turned[hop]); err != nil {
			return nil, err
		}
	}
	h.end(nodes)
	state, err := s.state(seeds)
	if err != nil {
		return nil, err
	}
	copy(m.made, loops)
	return s.batch(m, state, epoch, step, seeds, turned)
}

// hop samples one hop, with the destination of each edge if its edges are grouped afterwards. If nothing bounds the number
// of edges well, it waits for the number.
func (s *Sampler) hop(h *hops, m *memory, hop, epoch int, b *bounds, grouped bool) error {
	k := s.fan[hop]
	if err := s.forDestinations(h, &m.hops[hop], b.destinations); err != nil {
		return err
	}
	// A node is a destination once, so a hop has at most all edges of the graph.
	b.edges = s.g.Edges
	if k >= 0 && int64(k) < math.MaxInt64/max(b.destinations, 1) {
		b.edges = min(b.edges, b.destinations*int64(k))
	}
	h.count(hop, k, b.destinations, b.edges)
	if k < 0 && b.edges > 0 || b.edges > sizes.LookAbove {
		state, err := s.state(nil)
		if err != nil {
			return err
		}
		b.destinations, b.edges = state[1+2*hop], state[2+2*hop]
	}
	if b.edges > math.MaxInt32 {
		return fmt.Errorf("sampler: hop %d has %d edges, and a block on a device at most 2^31-1; take a smaller batch or fanout", hop, b.edges)
	}
	if err := s.forEdges(h, &m.hops[hop], k, b.edges, grouped); err != nil {
		return err
	}
	a := m.hops[hop].arrays()
	h.pick(hop, k, h.c3(philox.Purpose(s.c.Purpose), hop, epoch), &a, b.destinations, b.edges)
	h.longRows(hop, k, &a)
	if err := s.forNodes(h, m, b.destinations, min(s.g.Nodes, b.destinations+b.edges)); err != nil {
		return err
	}
	h.number(hop, &a, b.edges)
	return nil
}

// derive makes what a hop's batch has beside the sampled block: the edges by source (turned), and the block with
// self-loops, in both orders if turned.
func (s *Sampler) derive(h *hops, m *memory, hop int, most []bounds, loops, turned bool) error {
	b, sources, rowOf := most[hop], most[hop+1].destinations, cuda.Ptr(0)
	if turned {
		if err := s.forTranspose(h, &m.hops[hop], sources, b.edges); err != nil {
			return err
		}
		a := m.hops[hop].arrays()
		rowOf = h.transpose(hop, &a, sources, b.edges)
	}
	if !loops {
		return nil
	}
	x := &m.hops[s.c.Hops+hop]
	if err := s.forLoops(h, x, s.fan[hop], b, sources, turned); err != nil {
		return err
	}
	a, l := m.hops[hop].arrays(), x.arrays()
	h.loops(hop, &a, &l, rowOf, b.destinations, sources, b.edges)
	return nil
}

// state waits for the device and returns the state of the batch, or the fault that a kernel found.
func (s *Sampler) state(seeds []int32) ([]int64, error) {
	st := s.d.Sampling
	st.CopyToPinned(s.read, 0, s.scratch.state.Ptr, s.stateBytes())
	if err := st.Sync(); err != nil {
		return nil, err
	}
	state := int64s(s.read.Bytes)
	if state[0] != -1 {
		return nil, s.fault(uint64(state[0]), seeds)
	}
	return state, nil
}

// fault returns the error for a fault's number; see internal/cuda/kernels/sample.cuh.
func (s *Sampler) fault(code uint64, seeds []int32) error {
	where := int64(code & (1<<56 - 1))
	switch code >> 56 {
	case repeatedSeed:
		for i, v := range seeds {
			if v == seeds[where] {
				return fmt.Errorf("sampler: seed %d occurs twice, at positions %d and %d; the seeds of a batch must be distinct", v, i, where)
			}
		}
	case damagedOffsets:
		return fmt.Errorf("sampler: the graph is damaged: the offsets of node %d do not lie in its %d edges, one after the other; check the dataset", where, s.g.Edges)
	case damagedEdge:
		return fmt.Errorf("sampler: the graph is damaged: the edge at position %d of the indices has an invalid source; the nodes are 0 to %d; check the dataset", where, s.g.Nodes-1)
	case badWeight:
		return fmt.Errorf("sampler: the edge at position %d of the graph has a weight that is negative, infinite or not a number, but sampling weights must be finite and not negative", where)
	case overCapacity:
		return fmt.Errorf("sampler: the graph is damaged, or changed while it was sampled: a hop has %d edges or nodes, more than there can be", where)
	}
	return fmt.Errorf("sampler: the device reports fault %#x, which is none of the sampler's", code)
}

// batch makes the host's part of a batch from its sizes.
func (s *Sampler) batch(m *memory, state []int64, epoch, step int, seeds []int32, turned []bool) (*sample.Batch, error) {
	hops := s.c.Hops
	for hop := range hops {
		rows, looped := int(state[3+2*hop]), loopedAt(hops, hop)
		m.far[hop], m.far[hops+hop] = far{s: s, m: m, hop: hop, rows: rows}, far{s: s, m: m, hop: hops + hop, rows: rows}
		m.edges[hop], m.edges[hops+hop] = int(state[2+2*hop]), int(state[looped])
		k := &m.structs[hop]
		k.SetRemote(&m.far[hop], int(state[1+2*hop]), rows, hop, s.g.Host)
		m.dev[hop] = m.arraysOf(hop, state[longAt(hops, hop)], state[tLongAt(hops, hop)], turned[hop])
		m.loops[hop] = m.arraysOf(hops+hop, state[looped+1], state[looped+2], turned[hop])
		k.Dev = &m.dev[hop]
	}
	if err := s.ahead(m); err != nil {
		return nil, err
	}
	var once sync.Once
	return &sample.Batch{
		Epoch: epoch, Step: step, Seeds: append([]int32(nil), seeds...), Blocks: append([]*graphops.Block(nil), m.blocks...),
		Back: func() { once.Do(func() { s.release(m) }) },
	}, nil
}

// arraysOf returns the arrays of the block at an index of m.hops, with the sizes of its lists of chunks.
func (m *memory) arraysOf(at int, long, tLong int64, turned bool) cuda.BlockArrays {
	a := m.hops[at].arrays()
	d := cuda.BlockArrays{Indptr: a.indptr, Indices: a.indices, EdgePos: a.edgePos, SrcIDs: m.ids.Ptr, Weights: a.weights, Long: cuda.ChunkListAt(a.long, long)}
	if turned {
		d.TIndptr, d.TDst, d.TEdge, d.TLong = a.tIndptr, a.tDst, a.tEdge, cuda.ChunkListAt(a.tLong, tLong)
	} else {
		d.Turn = m.turn[at%len(m.turn)]
	}
	return d
}
