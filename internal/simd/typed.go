package simd

// TypedEdges are consecutive edges, each with a type: edge i weighs Shares[i]·Coef[Types[i]·Bases+k] for basis
// k. No Shares mean 1 for each edge. The types must have coefficients. W and IDs are memory that the functions
// on typed edges grow and reuse.
type TypedEdges struct {
	Types  []uint16
	Shares []float32
	Coef   []float32
	Bases  int

	W   []float32
	IDs []int32
}

func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n, n+n/4)
	}
	return x[:n]
}

func (s *TypedEdges) share(e int) float32 {
	if len(s.Shares) == 0 {
		return 1
	}
	return s.Shares[e]
}

// weights sets w [n, Bases] to the weights of n edges from e on.
func (s *TypedEdges) weights(w []float32, e, n int) {
	k := s.Bases
	for i := range n {
		by, at := s.share(e+i), int(s.Types[e+i])*k
		for j, c := range s.Coef[at : at+k] {
			w[i*k+j] = by * c
		}
	}
}

// Sum computes o[k·cols+c] = Σ of the weights for basis k of the edges from e on times column c of the rows ids
// of t, in their order: o [Bases·cols].
func (s *TypedEdges) Sum(o []float32, t *Rows, cols int, ids []int32, e int) {
	n, k := len(ids), s.Bases
	s.W = grown(s.W, n*k)
	s.weights(s.W, e, n)
	for j := range k {
		WeightedSumRows(o[j*cols:(j+1)*cols], t, ids, n, s.W[min(j, len(s.W)):], k, nil, false)
	}
}

// SumBack computes o[c] = Σ over the edges at of Σ_k of their weights for basis k times column c of row
// dst·Bases+k of t, in their order, where dst are the edges' destinations: o [cols]. With acc it adds to o.
func (s *TypedEdges) SumBack(o []float32, t *Rows, cols int, dst, at []int32, acc bool) {
	n, k := len(dst), s.Bases
	s.W, s.IDs = grown(s.W, n*k), grown(s.IDs, n*k)
	for i, d := range dst {
		s.weights(s.W[i*k:(i+1)*k], int(at[i]), 1)
		for j := range k {
			s.IDs[i*k+j] = d*int32(k) + int32(j)
		}
	}
	WeightedSumRows(o[:cols], t, s.IDs, n*k, s.W, 1, nil, acc)
}

// Dot adds, for each edge from e on and each basis k, its share times the product of g[k·cols:(k+1)·cols] with
// row ids[i] of t to sum[Types[e+i]·Bases+k], in the order of the edges.
func (s *TypedEdges) Dot(sum []float64, g []float32, t *Rows, cols int, ids []int32, e int) {
	n, k := len(ids), s.Bases
	if n == 0 {
		return
	}
	s.W = grown(s.W, n*k)
	for j := range k {
		DotRows(s.W[j:], k, g[j*cols:(j+1)*cols], t, ids, n)
	}
	for i := range n {
		by, at := float64(s.share(e+i)), int(s.Types[e+i])*k
		for j := range k {
			sum[at+j] += by * float64(s.W[i*k+j])
		}
	}
}

// TypedShares sets shares to 1 over the number of edges of the same type, among the edges of one destination.
// counts has an element for each type, is 0, and is 0 again.
func TypedShares(shares []float32, types []uint16, counts []int32) {
	for _, r := range types {
		counts[r]++
	}
	for i, r := range types {
		shares[i] = 1 / float32(counts[r])
	}
	for _, r := range types {
		counts[r] = 0
	}
}
