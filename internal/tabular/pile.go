package tabular

// Pile is a list that grows in chunks: growing copies nothing, and its memory is the size of its
// elements.
type Pile[T any] struct {
	chunks [][]T // all full but the last
	N      int
}

const pileChunk = 1 << 16 // elements

// Add appends x.
func (p *Pile[T]) Add(x T) {
	i := p.N / pileChunk
	if i == len(p.chunks) {
		p.chunks = append(p.chunks, make([]T, 0, pileChunk))
	}
	p.chunks[i] = append(p.chunks[i], x)
	p.N++
}

// Flat returns the elements as one slice and empties the pile. It returns nil if the pile is empty.
func (p *Pile[T]) Flat() []T {
	if p.N == 0 {
		return nil
	}
	out := make([]T, 0, p.N)
	for i, c := range p.chunks {
		out = append(out, c...)
		p.chunks[i] = nil
	}
	*p = Pile[T]{}
	return out
}
