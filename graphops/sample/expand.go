package sample

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// grain is the number of destinations of a chunk: large enough that handing out chunks costs
// nothing, small enough that a hub in one does not delay the others. No result depends on it.
const grain = 128

// A hop is expanded in three steps. Two passes run in parallel over chunks of destinations: the
// first counts the edges of each destination, the second picks and writes them, each chunk at its
// place in the block's arrays. The third step numbers the sources in the order of edges. One worker
// does it, because the order matters. It starts as soon as the first chunk is ready, while the
// other workers still pick, and finds the sources still in a cache. In disjoint trees it follows the
// second pass and runs in parallel too; see [treeRows].

// chunk is the destinations [c·grain, (c+1)·grain).
type chunk struct {
	edges int64 // number of edges that the destinations take
	first int64 // number of edges of earlier chunks
	// picks are positions, destination after destination, if a picker was asked. [Fanouts] writes
	// edges directly.
	picks []int32
	ready atomic.Bool // the edges are written and can be numbered
	err   error
}

// inEdges is the in-edges of a node: their first CSC position, and their number.
type inEdges struct {
	at int64
	n  int
}

// scratch is the working memory of one worker.
type scratch struct {
	hop   Hop
	out   []int32
	lanes lanes

	touched int64 // keeps the compiler from leaving out reads
}

// expansion is the state that the workers share while they expand a hop. The functions are stored
// because creating them again allocates.
type expansion struct {
	h       Hop
	e       *edges
	numbers graphops.Numbering // of the sources
	reached *[]int32           // the sources that have numbers, by number
	dst     []int32
	trees   []int32  // of the destinations, if trees are disjoint
	of      *[]int32 // the trees of the sources that have numbers
	known   int      // rows below are looked up already
	chunks  []chunk
	fanouts bool // the picker is Fanouts
	k       int  // its fanout
	workers int
	next    atomic.Int64 // the next chunk to draw
	number  int          // the next chunk to number, worker 0's

	count, pick, draw func(lo, hi int)
}

// expand picks for the destinations m.ids at a hop and writes the edges into m.hops[hop]. numbers
// gives their sources numbers, by which it extends reached; that may be &m.ids.
func (s *Sampler) expand(epoch, step, hop int, m *memory, numbers graphops.Numbering, reached *[]int32) error {
	x := &s.x
	x.h = Hop{Index: hop, seed: s.c.Seed, epoch: epoch, step: step, c3: philox.C3(philox.Purpose(s.c.Purpose), hop, epoch)}
	if s.trees.timed {
		x.h.strategy, x.h.halfLife = s.c.AsOf.strategy(), s.c.AsOf.HalfLife
		m.hops[hop].hidden = resize(m.hops[hop].hidden, len(m.ids))
	}
	x.e, x.dst, x.known, x.numbers, x.reached = &m.hops[hop], m.ids, len(s.rows), numbers, reached
	x.trees, x.of = m.trees, &m.trees
	n, e := len(x.dst), x.e
	e.indptr = resize(e.indptr, n+1)
	e.indptr[0] = 0
	s.rows = slices.Grow(s.rows, n-len(s.rows))[:n]
	for len(s.chunks) < parallel.Chunks(n, grain) {
		s.chunks = append(s.chunks, chunk{})
	}
	x.chunks = s.chunks[:parallel.Chunks(n, grain)]
	f, ok := s.c.Picker.(Fanouts)
	if x.fanouts = ok && !s.c.Disjoint; x.fanouts {
		if x.k = f[hop]; x.k < 0 {
			x.k = math.MaxInt
		}
	}
	parallel.For(s.c.Threads, n, grain, x.count)
	// Every chunk ran, so the reported error does not depend on the number of threads.
	if err := firstError(x.chunks); err != nil {
		return err
	}
	switch {
	case s.c.Frontier != nil:
		if err := s.pickFrontier(); err != nil {
			return err
		}
	case !x.fanouts:
		s.setLevels()
		s.start()
		parallel.For(s.c.Threads, x.workers, 1, x.pick)
		if err := firstError(x.chunks); err != nil {
			return err
		}
	}
	total := int64(0)
	for i := range x.chunks {
		x.chunks[i].first = total
		total += x.chunks[i].edges
	}
	e.edgePos = resize(e.edgePos, int(total))
	e.indices = resize(e.indices, int(total))
	if s.g.EdgeWeights != nil {
		e.weights = resize(e.weights, int(total))
	}
	s.start()
	parallel.For(s.c.Threads, x.workers, 1, x.draw)
	if !s.c.Disjoint {
		s.numberReady()
		return firstError(x.chunks)
	}
	if err := firstError(x.chunks); err != nil {
		return err
	}
	*x.reached, *x.of = s.trees.rows.number(*x.reached, *x.of, e.indptr, e.indices)
	return nil
}

// start makes all chunks available to the workers.
func (s *Sampler) start() {
	x := &s.x
	x.workers = min(parallel.Threads(s.c.Threads), len(x.chunks))
	for len(s.scratch) < x.workers { // GOMAXPROCS may have grown
		s.scratch = append(s.scratch, nil)
	}
	x.next.Store(0)
	x.number = 0
}

// take returns the next chunk that no worker has taken, or -1.
func (x *expansion) take() int {
	if c := int(x.next.Add(1) - 1); c < len(x.chunks) {
		return c
	}
	return -1
}

func firstError(chunks []chunk) error {
	for i := range chunks {
		if chunks[i].err != nil {
			return chunks[i].err
		}
	}
	return nil
}

// countChunk looks up the in-edges of the destinations [lo, hi) and, for [Fanouts], the number that
// each takes: e.indptr[d+1] becomes the number within the chunk up to destination d. Doing this
// first for all destinations lets the processor wait for many cache misses at once. It also finds
// damaged offsets before anything is sliced by them.
func (s *Sampler) countChunk(lo, hi int) {
	x := &s.x
	c := &x.chunks[lo/grain]
	c.picks, c.err = c.picks[:0], nil
	c.ready.Store(false)
	indptr, last, bad := s.g.Indptr, s.g.NumEdges(), int64(0)
	from := max(lo, x.known)
	if from < hi {
		rows := s.rows[from:hi]
		for i, v := range x.dst[from:hi] {
			at, end := indptr[v], indptr[v+1]
			rows[i] = inEdges{at, int(end - at)}
			bad |= at | (end - at) | (last - end) // negative if one of them is
		}
	}
	if bad < 0 {
		c.err = s.damagedOffsets(x.dst[from:hi])
		return
	}
	if !x.fanouts {
		return
	}
	total, k := 0, x.k
	counts := x.e.indptr[lo+1 : hi+1]
	for i, r := range s.rows[lo:hi] {
		total += min(r.n, k)
		counts[i] = int64(total)
	}
	c.edges = int64(total)
}

func (s *Sampler) damagedOffsets(nodes []int32) error {
	for _, v := range nodes {
		from, to := s.g.Indptr[v], s.g.Indptr[v+1]
		if from < 0 || to < from || to > s.g.NumEdges() {
			return fmt.Errorf("sample: the graph is damaged: the edges of node %d are from %d to %d, but there are %d in all; check the dataset", v, from, to, s.g.NumEdges())
		}
	}
	panic("unreachable: one of the nodes has damaged offsets")
}

// drawChunks is a worker's part of the second pass. Worker 0 also numbers: always the same worker,
// so that the table of rows stays in one core's caches. It waits for no other worker; chunks that
// are not ready are numbered after all workers have ended.
func (s *Sampler) drawChunks(worker, _ int) {
	x := &s.x
	w := s.takeScratch(worker)
	for {
		if worker == 0 && !s.c.Disjoint {
			s.numberReady()
		}
		c := x.take()
		if c < 0 {
			break
		}
		s.drawChunk(c, w)
		x.chunks[c].ready.Store(true)
		s.yield()
	}
	s.scratch[worker] = w
}

// drawChunk writes the edges of a chunk's destinations, with global ids in
// e.indices, and their offsets.
func (s *Sampler) drawChunk(c int, w *scratch) {
	x := &s.x
	k, e := &x.chunks[c], x.e
	lo, hi := c*grain, min((c+1)*grain, len(x.dst))
	edgePos := e.edgePos[k.first : k.first+k.edges]
	if x.fanouts {
		w.lanes.draw(&x.h, x.k, x.dst[lo:hi], s.rows[lo:hi], edgePos)
	} else {
		at := int64(0)
		for i, end := range e.indptr[lo+1 : hi+1] {
			first := s.rows[lo+i].at
			for ; at < end; at++ {
				edgePos[at] = first + int64(k.picks[at])
			}
		}
	}
	if k.first > 0 {
		indptr := e.indptr[lo+1 : hi+1]
		for i := range indptr {
			indptr[i] += k.first
		}
	}
	// The loop contains only independent random accesses.
	all, n, bad := s.g.Indices, int32(s.g.NumNodes()), int32(0)
	indices := e.indices[k.first:][:len(edgePos)]
	for i, pos := range edgePos {
		u := all[pos]
		indices[i] = u
		bad |= u | (n - 1 - u) // negative if one of them is
	}
	if weights := s.g.EdgeWeights; weights != nil {
		out := e.weights[k.first:][:len(edgePos)]
		for i, pos := range edgePos {
			out[i] = weights[pos]
		}
	}
	if bad < 0 {
		k.err = s.damagedEdge(lo, hi)
	}
}

func (s *Sampler) damagedEdge(lo, hi int) error {
	x := &s.x
	n, at := s.g.NumNodes(), x.chunks[lo/grain].first
	for d := lo; d < hi; d++ {
		for ; at < x.e.indptr[d+1]; at++ {
			if pos, u := x.e.edgePos[at], x.e.indices[at]; uint(u) >= uint(n) {
				return fmt.Errorf("sample: the graph is damaged: edge %d of node %d, at position %d of the indices, comes from node %d, but the nodes are 0 to %d; check the dataset", pos-s.rows[d].at, x.dst[d], pos, u, n-1)
			}
		}
	}
	panic("unreachable: one of the edges has an invalid source")
}

// numberReady numbers the sources of the chunks that are ready, in order. It stops at a damaged
// chunk.
func (s *Sampler) numberReady() {
	x := &s.x
	for ; x.number < len(x.chunks); x.number++ {
		c := &x.chunks[x.number]
		if !c.ready.Load() || c.err != nil {
			return
		}
		*x.reached = x.numbers.Number(*x.reached, x.e.indices[c.first:c.first+c.edges])
		s.yield()
	}
}

// yield lets other goroutines run, if a step waits for them.
func (s *Sampler) yield() {
	if s.yields {
		runtime.Gosched()
	}
}

// takeScratch returns a worker's scratch. The caller puts it back, except after a panic, which may
// leave bits set in seen.
func (s *Sampler) takeScratch(worker int) *scratch {
	w := s.scratch[worker]
	s.scratch[worker] = nil
	if w == nil {
		w = &scratch{out: make([]int32, 0, 256)}
	}
	return w
}

// resize returns a slice of length n that is never nil, in x's memory if that is large enough. Its
// contents are arbitrary. Fresh memory has exactly n elements; reallocated memory has some room to
// grow.
func resize[T any](x []T, n int) []T {
	if x == nil {
		return make([]T, n)
	}
	if cap(x) < n {
		return make([]T, n, n+n/8)
	}
	return x[:n]
}
