package graphops

// make is the counting sort of b's edges by source.
func (t *Transposed) make(b *Block, threads int) {
	n, first := b.NumEdges(), b.Indptr[0]
	t.Indptr, t.Dst, t.Edge = room(t.Indptr, b.NumSrc+1), room(t.Dst, n), room(t.Edge, n)
	clear(t.Indptr)
	// Source s's next place is kept in the entry after its own; once all are
	// placed, that is where the next source begins.
	next := t.Indptr[1:]
	for _, s := range b.Indices[first:b.Indptr[b.NumDst]] {
		next[s]++
	}
	sum := int64(0)
	for s, c := range next {
		next[s] = sum
		sum += c
	}
	for d := range b.NumDst {
		for e := b.Indptr[d]; e < b.Indptr[d+1]; e++ {
			s := b.Indices[e]
			at := next[s]
			next[s] = at + 1
			t.Dst[at], t.Edge[at] = int32(d), int32(e-first)
		}
	}
}

// room is a slice of length n in x's memory, if that is large enough.
func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n, n+n/8)
	}
	return x[:n]
}
