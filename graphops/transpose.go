package graphops

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

// transposePart is the number of edges per part. Each part has its own counter for each source.
const transposePart = 1 << 15

// transposing is the counting sort of a block's edges by source. The edges are cut into parts of
// consecutive destinations; each part counts and places its own edges. Within a source, the edges
// of a part follow those of earlier parts, so the number of parts does not change the result.
type transposing struct {
	b           *Block
	parts       int
	next        []int32           // counts, then places, by part and source
	each, place func(part, _ int) // stored, because creating them again allocates
}

func (t *Transposed) make(b *Block, threads int) {
	n := b.NumEdges()
	if n > math.MaxInt32 {
		panic(fmt.Sprintf("graphops: a block of %d edges is too large to transpose (at most 2^31-1 edges); train on sampled batches, whose blocks are small", n))
	}
	t.Indptr, t.Dst, t.Edge = room(t.Indptr, b.NumSrc+1), room(t.Dst, n), room(t.Edge, n)
	w := &t.work
	if w.each == nil {
		w.each, w.place = t.count, t.place
	}
	w.b, w.parts = b, min(parallel.Threads(threads), 1+n/transposePart)
	w.next = room(w.next, w.parts*b.NumSrc)
	parallel.For(threads, w.parts, 1, w.each)
	t.starts(b.NumSrc, w.parts)
	parallel.For(threads, w.parts, 1, w.place)
	w.b = nil
}

// part returns the destinations of part p: the part ends after p/parts of the edges.
func (w *transposing) part(p int) (lo, hi int) {
	b, n := w.b, w.b.NumEdges()
	end := func(p int) int {
		if p == w.parts {
			return b.NumDst
		}
		indptr := b.Indptr()
		d, _ := slices.BinarySearch(indptr, indptr[0]+int64(p*n/w.parts))
		return min(d, b.NumDst)
	}
	if p > 0 {
		lo = end(p)
	}
	return lo, end(p + 1)
}

// count counts the out-edges of each source in a part.
func (t *Transposed) count(part, _ int) {
	w := &t.work
	lo, hi := w.part(part)
	next := w.next[part*w.b.NumSrc:][:w.b.NumSrc]
	clear(next)
	indptr := w.b.Indptr()
	for _, s := range w.b.Indices()[indptr[lo]:indptr[hi]] {
		next[s]++
	}
}

// starts turns the counts of the parts into the positions of their first edges.
func (t *Transposed) starts(rows, parts int) {
	next := t.work.next
	sum := int32(0)
	for s := range rows {
		t.Indptr[s] = int64(sum)
		for i := s; i < parts*rows; i += rows {
			c := next[i]
			next[i] = sum
			sum += c
		}
	}
	t.Indptr[rows] = int64(sum)
}

// place writes the edges of a part.
func (t *Transposed) place(part, _ int) {
	w, b := &t.work, t.work.b
	lo, hi := w.part(part)
	indptr, indices := b.Indptr(), b.Indices()
	next, first := w.next[part*b.NumSrc:][:b.NumSrc], indptr[0]
	for d := lo; d < hi; d++ {
		from, to := indptr[d], indptr[d+1]
		e := int32(from - first)
		for _, s := range indices[from:to] {
			at := next[s]
			next[s] = at + 1
			t.Dst[at], t.Edge[at] = int32(d), e
			e++
		}
	}
}

// room returns a slice of length n, in x's memory if that is large enough.
func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n, n+n/8)
	}
	return x[:n]
}
