package convert

// pile is a list that grows in chunks: growing copies nothing, and its memory is the size of its
// elements.
type pile[T any] struct {
	chunks [][]T // all full but the last
	n      int
}

const pileChunk = 1 << 16 // elements

// add appends x.
func (p *pile[T]) add(x T) {
	i := p.n / pileChunk
	if i == len(p.chunks) {
		p.chunks = append(p.chunks, make([]T, 0, pileChunk))
	}
	p.chunks[i] = append(p.chunks[i], x)
	p.n++
}

// flat returns the elements as one slice and empties the pile. It returns nil if the pile is empty.
func (p *pile[T]) flat() []T {
	if p.n == 0 {
		return nil
	}
	out := make([]T, 0, p.n)
	for i, c := range p.chunks {
		out = append(out, c...)
		p.chunks[i] = nil
	}
	*p = pile[T]{}
	return out
}
