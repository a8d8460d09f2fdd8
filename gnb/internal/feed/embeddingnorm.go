package feed

import (
	"math"
)

// The squared norm of the gradients of learned rows is a sum over rows that different ranks own. It must have the same
// bits for any division of the rows, so it is added as whole numbers: each row's sum is rounded to 31 bits, and rows of
// the same power of two are added in one int64. 2^31 rows fit, and the rounding is 2^-31 of each row's sum.
const (
	squareBits = 31
	// Sums of squares of float32 are from 2^-298 to below 2^(256+31).
	leastPower, powers = -300, 600
)

// Squares returns the sum of the squares of this step's gradients of all rows, the same bits on all ranks and for any division
// of the rows among them; it is infinite or NaN if a gradient is. It follows [Embeddings.Collect]. Collective.
func (t *Embeddings) Squares() (float64, error) {
	bins := make([]int64, powers+1) // the last one counts rows that are not finite
	for i := range t.touched {
		var s float64
		for _, x := range t.sums[i*t.Cols : (i+1)*t.Cols] {
			s += float64(x) * float64(x)
		}
		addSquare(bins, s)
	}
	if t.o.Comm.Size() > 1 {
		if err := t.o.Comm.SumInt64(t.o.Site("norm of embeddings"), bins); err != nil {
			return 0, err
		}
	}
	return sumSquares(bins), nil
}

func addSquare(bins []int64, s float64) {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		bins[powers]++
		return
	}
	share, power := math.Frexp(s)
	if s != 0 {
		bins[min(max(power-leastPower, 0), powers-1)] += int64(math.Round(math.Ldexp(share, squareBits)))
	}
}

func sumSquares(bins []int64) (sum float64) {
	if bins[powers] > 0 {
		return math.NaN()
	}
	for i, n := range bins[:powers] {
		sum += math.Ldexp(float64(n), i+leastPower-squareBits)
	}
	return sum
}
