package partition

// patience is the number of moves without a new best that end a local search.
const patience = 60

// local improves a division by many small searches: each starts from one node at a border, moves
// it and then those around it that save most or cost least, and keeps the best moment. A node moves
// once in a round. It returns the weight of the edges saved.
//
// Source: P. Sanders, C. Schulz, "Engineering multilevel graph partitioning algorithms", ESA 2011,
// arXiv:1012.0006, section 4.2 (multi-try FM).
func (s *search) local(r *moves) (total int64) {
	if len(s.moved) < len(r.of) {
		s.moved, s.round = make([]int32, len(r.of)), 0
	}
	var h heap
	for range 12 {
		border := r.border()
		for i := range border {
			j := i + s.below(len(border)-i)
			border[i], border[j] = border[j], border[i]
		}
		s.round++
		var saved int64
		for i, v := range border {
			if i&0xff == 0 && s.ctx.Err() != nil {
				return total
			}
			if s.moved[v] != s.round {
				saved += s.from(r, v, &h)
			}
		}
		total += saved
		if saved == 0 {
			break
		}
	}
	return total
}

// border lists the nodes with an edge into another part.
func (r *moves) border() (nodes []int32) {
	for v, p := range r.of {
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if r.of[u] != p {
				nodes = append(nodes, int32(v))
				break
			}
		}
	}
	return nodes
}

// step is a move that can be undone.
type step struct{ node, from int32 }

// from searches from one node.
func (s *search) from(r *moves, start int32, h *heap) (saved int64) {
	const random = 256 // gains in the heap are multiples of it, plus a random number that breaks ties
	*h = (*h)[:0]
	offer := func(v int32) {
		if to, gain := r.look(v); to >= 0 {
			h.push(item{gain*random + int64(s.below(random)), v})
		}
	}
	offer(start)
	done := s.steps[:0]
	var now int64
	kept := 0
	for len(*h) > 0 && len(done)-kept < patience {
		it := h.pop()
		v := it.node
		if s.moved[v] == s.round {
			continue
		}
		to, gain := r.look(v)
		if to < 0 {
			continue
		}
		if gain < it.gain>>8 { // its neighbours have moved, or parts have filled up
			h.push(item{gain*random + it.gain&(random-1), v})
			continue
		}
		done = append(done, step{v, r.of[v]})
		r.move(v, to)
		s.moved[v] = s.round
		if now += gain; now > saved {
			saved, kept = now, len(done)
		}
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if s.moved[u] != s.round {
				offer(u)
			}
		}
	}
	for i := len(done) - 1; i >= kept; i-- {
		r.move(done[i].node, done[i].from)
	}
	s.steps = done
	return saved
}
