package sampler

import (
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// buffers is the scratch memory of a sampler; see scratch for its content.
type buffers struct {
	table, state, local, count, tops, tiles *cuda.Buffer
	edges, bits, before, rowOf              *cuda.Buffer
	digits, parts, keys1, keys2, values     *cuda.Buffer
}

func (b *buffers) all() []**cuda.Buffer {
	return []**cuda.Buffer{&b.table, &b.state, &b.local, &b.count, &b.tops, &b.tiles, &b.edges, &b.bits, &b.before, &b.rowOf, &b.digits, &b.parts, &b.keys1, &b.keys2, &b.values}
}

// memory is the memory of one batch. far, edges and hops have an element for each hop's block, and then one for each hop's
// block with self-loops.
type memory struct {
	seeds, ids *cuda.Buffer
	host       *onHost
	far        []far
	edges      []int
	hops       []hopMemory
	dev        []cuda.BlockArrays
	made       []bool             // by hop, whether this batch has the block with self-loops
	loops      []cuda.BlockArrays // by hop, the arrays of that block
	turn       []func()           // by hop, asks for edges by source
	structs    []graphops.Block
	blocks     []*graphops.Block // the farthest first
	done       *cuda.Event       // reached when the compute stream has passed its last use
	used       bool
}

// hopMemory holds a block's arrays, and the destination of each edge.
type hopMemory struct {
	indptr, indices, edgePos, dst, weights *cuda.Buffer
	tIndptr, tDst, tEdge                   *cuda.Buffer
	long, tLong                            *cuda.Buffer
}

func (x *hopMemory) all() []**cuda.Buffer {
	return []**cuda.Buffer{&x.indptr, &x.indices, &x.edgePos, &x.dst, &x.weights, &x.tIndptr, &x.tDst, &x.tEdge, &x.long, &x.tLong}
}

func at(b *cuda.Buffer) cuda.Ptr {
	if b == nil {
		return 0
	}
	return b.Ptr
}

func (x *hopMemory) arrays() arrays {
	return arrays{at(x.indptr), at(x.indices), at(x.edgePos), at(x.dst), at(x.weights), at(x.tIndptr), at(x.tDst), at(x.tEdge), at(x.long), at(x.tLong)}
}

// need makes *b a buffer of at least n bytes with any content. A buffer that grows gets some more
// than it needs, so that batches of about the same size soon allocate nothing.
func (s *Sampler) need(b **cuda.Buffer, n int64) error {
	n = max(n, 1)
	if *b != nil && (*b).Bytes >= n {
		return nil
	}
	if *b != nil {
		n += n / 8
	}
	(*b).Free()
	*b = nil
	buf, err := s.d.Sampling.Alloc(cuda.Sampling, n)
	if err != nil {
		return err
	}
	buf.UsedOn(s.d.Compute)
	*b = buf
	return nil
}

// needs calls need for several buffers.
func (s *Sampler) needs(wants ...want) error {
	for _, w := range wants {
		if err := s.need(w.b, w.bytes); err != nil {
			return err
		}
	}
	return nil
}

type want struct {
	b     **cuda.Buffer
	bytes int64
}

func (s *Sampler) forSeeds(h *hops, m *memory, seeds []int32) error {
	n := int64(len(seeds))
	if err := s.needs(want{&m.seeds, 4 * n}, want{&m.ids, 4 * n}); err != nil {
		return err
	}
	h.ids, h.m.table, h.m.state = m.ids.Ptr, s.scratch.table.Ptr, s.scratch.state.Ptr
	return cuda.CopyIn(s.d.Sampling, m.seeds.Ptr, seeds)
}

func (s *Sampler) forDestinations(h *hops, x *hopMemory, n int64) error {
	c := &s.scratch
	if err := s.needs(want{&x.indptr, 8 * (n + 1)}, want{&c.local, 8 * n}, want{&c.tiles, 8 * int64(tiles(n))}); err != nil {
		return err
	}
	if s.weighted {
		if err := s.needs(want{&c.count, 8 * n}, want{&c.tops, 4 * n}); err != nil {
			return err
		}
	}
	h.m.local, h.m.tiles, h.m.count, h.m.tops = at(c.local), at(c.tiles), at(c.count), at(c.tops)
	return nil
}

func (s *Sampler) forEdges(h *hops, x *hopMemory, fanout int, n int64, grouped bool) error {
	c, t := &s.scratch, int64(tiles(n))
	if err := s.needs(want{&x.indices, 4 * n}, want{&x.edgePos, 8 * n}, want{&c.edges, 8 * t}, want{&c.bits, 128 * t}); err != nil {
		return err
	}
	if grouped || !shortRows(fanout) {
		if err := s.need(&x.dst, 4*n); err != nil {
			return err
		}
	}
	if !shortRows(fanout) {
		if err := s.need(&x.long, sizes.ChunkList(n)); err != nil {
			return err
		}
	}
	if s.g.Weights != 0 {
		if err := s.need(&x.weights, 4*n); err != nil {
			return err
		}
	}
	h.m.edges, h.m.bits = at(c.edges), at(c.bits)
	return nil
}

// forNodes makes room for n nodes in all; at most known of them exist now.
func (s *Sampler) forNodes(h *hops, m *memory, known, n int64) error {
	if m.ids.Bytes >= 4*n {
		return nil
	}
	old := m.ids
	m.ids = nil
	if err := s.need(&m.ids, 4*n); err != nil {
		m.ids = old
		return err
	}
	s.d.Sampling.Copy(m.ids.Ptr, old.Ptr, 4*known)
	old.Free()
	h.ids = m.ids.Ptr
	return nil
}

func (s *Sampler) forTranspose(h *hops, x *hopMemory, sources, edges int64) error {
	c := &s.scratch
	if err := s.needs(want{&x.tIndptr, 8 * (sources + 1)}, want{&x.tDst, 4 * edges}, want{&x.tEdge, 4 * edges}, want{&c.digits, 8 * digits * int64(tiles(edges))}, want{&c.parts, 8 * int64(partsOf(tiles(edges)))},
		want{&x.tLong, sizes.ChunkList(edges)}, want{&c.keys1, 4 * edges}, want{&c.keys2, 4 * edges}, want{&c.values, 4 * edges}); err != nil {
		return err
	}
	h.m.digits, h.m.parts, h.m.keys1, h.m.keys2, h.m.values = at(c.digits), at(c.parts), at(c.keys1), at(c.keys2), at(c.values)
	return nil
}

// forLoops makes room for the block with self-loops x of a hop, in both orders if transposed.
func (s *Sampler) forLoops(h *hops, x *hopMemory, fanout int, b bounds, sources int64, transposed bool) error {
	c, edges := &s.scratch, b.edges+b.destinations
	wants := []want{{&x.indptr, 8 * (b.destinations + 1)}, {&x.indices, 4 * edges}, {&x.edgePos, 8 * edges}, {&c.before, 128 * int64(tiles(b.edges))}}
	long := sizes.Hop{Fanout: fanout}.Long(1)
	if long {
		wants = append(wants, want{&x.long, sizes.ChunkList(edges)})
	}
	if transposed {
		wants = append(wants, want{&x.tIndptr, 8 * (sources + 1)}, want{&x.tDst, 4 * edges}, want{&x.tEdge, 4 * edges}, want{&x.tLong, sizes.ChunkList(edges)})
	}
	if long || transposed {
		wants = append(wants, want{&c.rowOf, 4 * edges})
	}
	if err := s.needs(wants...); err != nil {
		return err
	}
	h.m.before, h.m.rowOf = at(c.before), at(c.rowOf)
	return nil
}

// memory returns new memory, or that of the batch released longest ago, which the compute stream
// passes first.
func (s *Sampler) memory() (*memory, error) {
	s.mu.Lock()
	var m *memory
	if len(s.free) > 0 {
		m = s.free[0]
		s.free = slices.Delete(s.free, 0, 1)
	}
	s.mu.Unlock()
	if m != nil {
		if m.used {
			s.d.Sampling.Wait(m.done)
		}
		return m, nil
	}
	n := 2 * s.c.Hops
	m = &memory{hops: make([]hopMemory, n), host: newOnHost(n), far: make([]far, n), edges: make([]int, n), structs: make([]graphops.Block, s.c.Hops)}
	m.dev, m.loops, m.made = make([]cuda.BlockArrays, s.c.Hops), make([]cuda.BlockArrays, s.c.Hops), make([]bool, s.c.Hops)
	for hop := range s.c.Hops {
		m.turn = append(m.turn, func() { s.ask(s.turned, hop) })
		m.blocks = append(m.blocks, &m.structs[s.c.Hops-1-hop])
	}
	var err error
	if m.done, err = s.d.Event(false); err != nil {
		return nil, err
	}
	return m, nil
}

// release returns a batch's memory, in the order of the compute stream.
func (s *Sampler) release(m *memory) {
	for i := range m.structs {
		m.structs[i].SetHost(graphops.HostBlock{}) // the backend may have stored something with the blocks
	}
	s.forget(m)
	s.d.Compute.Record(m.done)
	m.used = true
	s.keep(m)
}

func (s *Sampler) keep(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		m.freeAll()
		return
	}
	s.free = append(s.free, m)
}

func (m *memory) freeAll() {
	freeAll(&m.seeds, &m.ids)
	for i := range m.hops {
		freeAll(m.hops[i].all()...)
	}
}

func freeAll(all ...**cuda.Buffer) {
	for _, b := range all {
		(*b).Free()
		*b = nil
	}
}

// Close frees the memory. Memory of batches still in use is freed when they are released, or when
// the device is closed. The sampler cannot be used afterwards.
func (s *Sampler) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, m := range s.free {
		m.freeAll()
	}
	s.free = nil
	freeAll(s.scratch.all()...)
	return s.read.Free()
}

func int64s(b []byte) []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(&b[0])), len(b)/8) }
