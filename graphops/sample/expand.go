package sample

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// grain is the number of destinations of a chunk: large enough that handing out
// chunks costs nothing, small enough that a hub in one does not hold up the
// others. No result depends on it.
const grain = 128

// chunk is what was picked for the destinations [c·grain, (c+1)·grain).
type chunk struct {
	at     [grain]int64 // the CSC position of each destination's first in-edge
	degree [grain]int   // its in-degree
	picks  []int32      // positions, destination after destination
	err    error
}

// scratch is what one goroutine needs while it picks.
type scratch struct {
	hop Hop
	out []int32
}

// expand picks for the destinations dst at a hop and writes the edges into e,
// with global ids in e.indices.
func (s *Sampler) expand(epoch, step, hop int, dst []int32, e *edges) error {
	h := Hop{Index: hop, seed: s.c.Seed, epoch: epoch, step: step, c3: philox.C3(s.c.Purpose, hop, epoch)}
	// Pass 1 leaves each destination's number of picks in the entry after its own.
	e.indptr = resize(e.indptr, len(dst)+1)
	e.indptr[0] = 0
	for len(s.chunks) < parallel.Chunks(len(dst), grain) {
		s.chunks = append(s.chunks, chunk{})
	}
	chunks := s.chunks[:parallel.Chunks(len(dst), grain)]
	if s.c.Frontier != nil {
		if err := s.pickFrontier(h, dst, chunks, e.indptr[1:]); err != nil {
			return err
		}
	} else {
		parallel.For(s.c.Threads, len(dst), grain, func(lo, hi int) {
			s.pickChunk(h, dst[lo:hi], &chunks[lo/grain], e.indptr[lo+1:hi+1])
		})
		// Every chunk ran, so which error is reported does not depend on threads.
		if err := firstError(chunks); err != nil {
			return err
		}
	}
	for d := range dst {
		e.indptr[d+1] += e.indptr[d]
	}
	e.edgePos = resize(e.edgePos, int(e.indptr[len(dst)]))
	e.indices = resize(e.indices, int(e.indptr[len(dst)]))
	if s.g.Weights != nil {
		e.weights = resize(e.weights, int(e.indptr[len(dst)]))
	}
	parallel.For(s.c.Threads, len(dst), grain, func(lo, hi int) {
		s.fill(dst, lo, hi, &chunks[lo/grain], e)
	})
	return firstError(chunks)
}

func firstError(chunks []chunk) error {
	for i := range chunks {
		if chunks[i].err != nil {
			return chunks[i].err
		}
	}
	return nil
}

// pickChunk asks the picker about each destination and keeps its picks and their
// counts.
func (s *Sampler) pickChunk(h Hop, dst []int32, c *chunk, counts []int64) {
	if s.start(c, dst); c.err != nil {
		return
	}
	w := s.takeScratch() // not put back after a panic, which may leave bits set in seen
	h.seen, h.tree = w.hop.seen, w.hop.tree
	w.hop = h
	if f, ok := s.c.Picker.(Fanouts); ok {
		// The same picks as below, straight into place.
		for i, v := range dst {
			before := len(c.picks)
			w.hop.At(v)
			c.picks = w.hop.Uniform(c.degree[i], f[h.Index], c.picks)
			counts[i] = int64(len(c.picks) - before)
		}
		s.putScratch(w)
		return
	}
	v := int32(-1)
	defer func() {
		if r := recover(); r != nil {
			c.err = s.recovered(r, h.Index, v)
		}
	}()
	for i := range dst {
		v = dst[i]
		if c.degree[i] == 0 {
			counts[i] = 0
			continue
		}
		nbrs := s.g.InNeighbors(v)
		w.hop.At(v)
		w.hop.pos = c.at[i]
		if all := s.g.Weights; all != nil {
			w.hop.weights = all[c.at[i]:][:len(nbrs):len(nbrs)]
		}
		out := s.c.Picker.Pick(&w.hop, v, nbrs, w.out[:0:cap(w.out)])
		// The copy lets the picker return any slice, one of its own included.
		before := len(c.picks)
		c.picks = append(c.picks, out...)
		if c.err = s.sorted(h.Index, v, c.picks[before:], len(nbrs)); c.err != nil {
			return
		}
		counts[i] = int64(len(out))
		if len(out) > cap(w.out) {
			w.out = make([]int32, 0, 2*len(out))
		}
	}
	s.putScratch(w)
}

// start empties a chunk and looks up where the in-edges of its destinations are.
// Doing that for all of them first lets the processor wait for many cache misses
// at a time, which is much of a hop's cost. A graph whose offsets are damaged is
// found here, before anything is sliced by them.
func (s *Sampler) start(c *chunk, dst []int32) {
	c.picks, c.err = c.picks[:0], nil
	for i, v := range dst {
		c.at[i], c.degree[i] = s.g.Indptr[v], int(s.g.Indptr[v+1])
	}
	for i, v := range dst {
		from, to := c.at[i], int64(c.degree[i])
		if from < 0 || to < from || to > s.g.NumEdges() {
			c.err = fmt.Errorf("sample: the graph is damaged: the edges of node %d are from %d to %d, but there are %d in all; check the dataset", v, from, to, s.g.NumEdges())
			return
		}
		c.degree[i] = int(to - from)
	}
}

// sorted checks that the picks of v are positions below n, and sorts them.
func (s *Sampler) sorted(hop int, v int32, picks []int32, n int) error {
	ascending, last := true, int32(0)
	for i, p := range picks {
		if uint(p) >= uint(n) {
			return &PickError{Picker: s.name, Hop: hop, Node: v, Err: fmt.Errorf(
				"returned position %d as pick %d of %d, but the node has %d in-neighbours: positions are 0 to %d", p, i, len(picks), n, n-1)}
		}
		ascending = ascending && p >= last
		last = p
	}
	if !ascending {
		slices.Sort(picks)
	}
	return nil
}

// span is a part of a slice, with both ends counted from 1 so that the zero value
// says that there is none yet.
type span struct{ from, to int }

// pickFrontier asks the frontier picker about all destinations, with the same
// result as pickChunk for each chunk.
func (s *Sampler) pickFrontier(h Hop, dst []int32, chunks []chunk, counts []int64) error {
	for c := range chunks {
		s.start(&chunks[c], dst[c*grain:min((c+1)*grain, len(dst))])
	}
	if err := firstError(chunks); err != nil {
		return err
	}
	// Destination i's picks are all[spans[i].from-1 : spans[i].to-1].
	s.spans = resize(s.spans, len(dst))
	clear(s.spans)
	spans, all := s.spans, s.all[:0]
	var bad error
	pick := func(i int, positions []int32) {
		switch {
		case bad != nil:
		case i < 0 || i >= len(dst):
			bad = &PickError{Picker: s.name, Hop: h.Index, Node: -1, Err: fmt.Errorf("picked for destination %d, but there are %d", i, len(dst))}
		case spans[i] != span{}:
			bad = &PickError{Picker: s.name, Hop: h.Index, Node: dst[i], Err: fmt.Errorf("picked a second time for destination %d; all picks of one go into one call", i)}
		default:
			from := len(all)
			all = append(all, positions...)
			spans[i] = span{from + 1, len(all) + 1}
			bad = s.sorted(h.Index, dst[i], all[from:], s.g.InDegree(dst[i]))
		}
	}
	err := s.callFrontier(h, dst, pick)
	s.all = all
	if bad != nil {
		return bad
	}
	if err != nil {
		return err
	}
	for c := range chunks {
		for i := c * grain; i < min((c+1)*grain, len(dst)); i++ {
			if spans[i] != (span{}) {
				chunks[c].picks = append(chunks[c].picks, all[spans[i].from-1:spans[i].to-1]...)
			}
			counts[i] = int64(spans[i].to - spans[i].from)
		}
	}
	return nil
}

func (s *Sampler) callFrontier(h Hop, dst []int32, pick func(int, []int32)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.recovered(r, h.Index, -1)
		}
	}()
	h.At(0)
	if err := s.c.Frontier.PickFrontier(&h, s.g, dst, pick); err != nil {
		return &PickError{Picker: s.name, Hop: h.Index, Node: -1, Err: fmt.Errorf("failed: %w", err)}
	}
	return nil
}

// fill writes the edges of the destinations [lo, hi): their positions first, so
// that the loop of random accesses has nothing else in it.
func (s *Sampler) fill(dst []int32, lo, hi int, c *chunk, e *edges) {
	first, last := e.indptr[lo], e.indptr[hi]
	edgePos, indices := e.edgePos[first:last], e.indices[first:last]
	for d := lo; d < hi; d++ {
		at := c.at[d-lo]
		for i := e.indptr[d] - first; i < e.indptr[d+1]-first; i++ {
			edgePos[i] = at + int64(c.picks[i])
		}
	}
	all, damaged := s.g.Indices, uint32(0)
	n := uint32(s.g.NumNodes())
	for i, pos := range edgePos {
		u := all[pos]
		indices[i] = u
		if uint32(u) >= n {
			damaged++
		}
	}
	if w := s.g.Weights; w != nil {
		weights := e.weights[first:last]
		for i, pos := range edgePos {
			weights[i] = w[pos]
		}
	}
	if damaged == 0 {
		return
	}
	for d := lo; d < hi; d++ {
		for i := e.indptr[d]; i < e.indptr[d+1]; i++ {
			if uint32(e.indices[i]) >= n {
				c.err = fmt.Errorf("sample: the graph is damaged: edge %d of node %d, at position %d of the indices, comes from node %d, but the nodes are 0 to %d; check the dataset", e.edgePos[i]-c.at[d-lo], dst[d], e.edgePos[i], e.indices[i], n-1)
				return
			}
		}
	}
}

// recovered turns a picker's panic into an error. A fault in mapped memory is
// not the picker's: it goes on as a panic, for the guard that knows the file.
func (s *Sampler) recovered(r any, hop int, v int32) error {
	if err, ok := r.(error); ok {
		var fault interface{ Addr() uintptr }
		if errors.As(err, &fault) {
			panic(r)
		}
	}
	e := &PickError{Picker: s.name, Hop: hop, Node: v, Stack: debug.Stack()}
	if p, ok := r.(*parallel.Panic); ok {
		e.Stack = p.Stack
	}
	cause, ok := r.(error)
	if !ok {
		cause = fmt.Errorf("%v", r)
	}
	e.Err = fmt.Errorf("panicked%s: %w", panicSite(), cause)
	return e
}

// panicSite is " at file:line" of the picker's innermost frame, for the deferred
// function that recovers its panic: below the runtime's frames and ours.
func panicSite() string {
	const module = "github.com/graphnb/graphnb/"
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	for panicking := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime.") &&
			!strings.HasPrefix(f.Function, module+"internal/") && !strings.HasPrefix(f.Function, module+"graphops/sample."):
			return fmt.Sprintf(" at %s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

func (s *Sampler) takeScratch() *scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.scratch); n > 0 {
		w := s.scratch[n-1]
		s.scratch = s.scratch[:n-1]
		return w
	}
	return &scratch{out: make([]int32, 0, 256)}
}

func (s *Sampler) putScratch(w *scratch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scratch = append(s.scratch, w)
}

// resize returns a slice of length n that is never nil, in x's memory where that
// is large enough. Its contents are arbitrary. Fresh memory has exactly n
// elements, reused memory had some room to grow.
func resize[T any](x []T, n int) []T {
	if x == nil {
		return make([]T, n)
	}
	if cap(x) < n {
		return make([]T, n, n+n/8)
	}
	return x[:n]
}
