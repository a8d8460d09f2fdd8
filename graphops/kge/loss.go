package kge

import (
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
)

// KvsAll is the binary cross-entropy of queries with all entities (T. Dettmers et al., 2018): scores
// [len(ids),N] are those of the queries ids of q, as [Decoder.Tails] returns them; an answer of the query
// is 1, every other entity 0.
//
//	Sum = Σ log(1+e^s) - y·s, y = (1-smoothing)·[answer] + smoothing/N
//
// Weight is the number of scores. smoothing is that of labels, 0 to 1. ids and q are kept until
// Backward. It panics with a *tensor.Error if the shapes do not fit.
func KvsAll(scores *nn.Tensor, q *Queries, ids []int32, smoothing float64) *nn.Loss {
	const op = "KvsAll"
	n, cols := scores.Rows(), scores.Cols()
	if n != len(ids) {
		fail(op, "the scores are [%d,%d], of %d queries", n, cols, len(ids))
	}
	if !(smoothing >= 0 && smoothing < 1) {
		fail(op, "the smoothing of labels is %v; it is at least 0 and below 1", smoothing)
	}
	for _, i := range ids {
		if i < 0 || int(i) >= q.Len() {
			fail(op, "query %d is none of %d", i, q.Len())
		}
		if a := q.Of(int(i)); int(a[len(a)-1]) >= cols {
			fail(op, "query %d is answered by entity %d, but there are scores of %d entities", i, a[len(a)-1], cols)
		}
	}
	f := scores.Fwd()
	x, threads := scores.Data(), f.Config().Threads
	answer, other := 1-smoothing, smoothing/float64(max(cols, 1))
	sum := f.Custom(op, []*nn.Tensor{scores}, 1, 1, func(out []float32) {
		sums := make([]float64, n)
		parallel.For(threads, n, grain(4*cols), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row, sum := x[i*cols:][:cols], 0.0
				for _, s := range row {
					sum += softplus(float64(s)) - other*float64(s)
				}
				for _, t := range q.Of(int(ids[i])) {
					sum -= answer * float64(row[t])
				}
				sums[i] = sum
			}
		})
		total := 0.0
		for _, s := range sums {
			total += s
		}
		out[0] = float32(total)
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0])
		parallel.For(threads, n, grain(4*cols), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row, dx := x[i*cols:][:cols], dIn[0][i*cols:][:cols]
				for j, s := range row {
					dx[j] = float32(d * (1/(1+math.Exp(-float64(s))) - other))
				}
				for _, t := range q.Of(int(ids[i])) {
					dx[t] = float32(d * (1/(1+math.Exp(-float64(row[t]))) - other - answer))
				}
			}
		})
	})
	return &nn.Loss{Sum: sum, Weight: float64(n * cols)}
}

// softplus is log(1+e^x).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
