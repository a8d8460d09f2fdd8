package feed

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The sum of squares has the same bits in any order and division of the rows, and is nearly the exact sum.
func TestSquaresDoNotDependOnTheDivision(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]float64, 5000)
	var exact float64
	for i := range rows {
		rows[i] = math.Ldexp(r.Float64(), r.IntN(120)-90)
		exact += rows[i]
	}
	whole := make([]int64, powers+1)
	for _, s := range rows {
		addSquare(whole, s)
	}
	want := sumSquares(whole)
	if math.Abs(want-exact) > 1e-9*exact {
		t.Errorf("the sum is %v, want %v", want, exact)
	}
	for _, ranks := range []int{2, 3, 7} {
		all := make([]int64, powers+1)
		for range ranks {
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
		for rank := range ranks {
			part := make([]int64, powers+1)
			for i := rank; i < len(rows); i += ranks {
				addSquare(part, rows[i])
			}
			for i, n := range part {
				all[i] += n
			}
		}
		if got := sumSquares(all); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%d ranks: %v, one rank: %v", ranks, got, want)
		}
	}
}

func TestSquaresOfTheLargestAndTheSmallest(t *testing.T) {
	for _, x := range []float32{math.SmallestNonzeroFloat32, math.MaxFloat32, 1, 0} {
		bins := make([]int64, powers+1)
		s := float64(x) * float64(x)
		for range 3 {
			addSquare(bins, s)
		}
		if got := sumSquares(bins); math.Abs(got-3*s) > 1e-9*s {
			t.Errorf("3·%g² is %v, want %v", x, got, 3*s)
		}
	}
	for _, s := range []float64{math.NaN(), math.Inf(1)} {
		bins := make([]int64, powers+1)
		addSquare(bins, 1)
		addSquare(bins, s)
		if got := sumSquares(bins); !math.IsNaN(got) {
			t.Errorf("with %v: %v", s, got)
		}
	}
}
