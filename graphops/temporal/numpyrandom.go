package temporal

import "gonum.org/v1/gonum/mathext/prng"

// numpyRandom draws as numpy.random.RandomState does, the generator behind numpy.random.seed and numpy.random.choice, which NumPy keeps
// unchanged (NEP 19).
type numpyRandom struct {
	words *prng.MT19937
	order []int32
}

func newNumpyRandom(seed uint32) *numpyRandom {
	r := &numpyRandom{words: prng.NewMT19937()}
	r.words.Seed(uint64(seed))
	return r
}

// interval draws a number from 0 to most: words are masked to its bits, and drawn again where they are above it.
func (r *numpyRandom) interval(most uint32) uint32 {
	if most == 0 {
		return 0
	}
	mask := most
	for _, shift := range []int{1, 2, 4, 8, 16} {
		mask |= mask >> shift
	}
	for {
		if x := r.words.Uint32() & mask; x <= most {
			return x
		}
	}
}

// permutation returns 0 to n-1 in a random order. The memory is that of r, until the next call.
func (r *numpyRandom) permutation(n int) []int32 {
	if cap(r.order) < n {
		r.order = make([]int32, n)
	}
	order := r.order[:n]
	for i := range order {
		order[i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := r.interval(uint32(i))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// choice appends n of the elements of pool, without replacement: numpy.random.choice(pool, n, replace=False).
func (r *numpyRandom) choice(to, pool []int32, n int) []int32 {
	for _, i := range r.permutation(len(pool))[:n] {
		to = append(to, pool[i])
	}
	return to
}
