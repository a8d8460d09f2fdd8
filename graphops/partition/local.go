package partition

import "slices"

// local improves a division by many small searches: each starts from one node at a border, moves
// it and then those around it that save most or cost least, until the given number of moves is in
// vain, and keeps the best moment. A node moves once in a round. It returns the weight of the edges
// saved.
//
// Source: P. Sanders, C. Schulz, "Engineering multilevel graph partitioning algorithms", ESA 2011,
// arXiv:1012.0006, section 4.2 (multi-try FM).
func (s *search) local(r *moves, rounds, patience int) (total int64) {
	for range rounds {
		r.prepare()
		starts := slices.Clone(r.border)
		for i := range starts {
			j := i + s.below(len(starts)-i)
			starts[i], starts[j] = starts[j], starts[i]
		}
		r.round++
		var saved int64
		for i, v := range starts {
			if i&0xff == 0 && s.ctx.Err() != nil {
				return total
			}
			if r.moved[v] != r.round {
				r.h = r.h[:0]
				r.offer(v)
				saved += r.search(s.ctx, patience)
			}
		}
		total += saved
		if saved == 0 {
			break
		}
	}
	return total
}
