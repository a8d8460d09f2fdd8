package kge

import (
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
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
	checkQueries(op, scores, q, ids)
	if !(smoothing >= 0 && smoothing < 1) {
		fail(op, "the smoothing of labels is %v; it is at least 0 and below 1", smoothing)
	}
	n, cols := scores.Rows(), scores.Cols()
	f := scores.Fwd()
	x, threads := scores.Data(), f.Config().Threads
	answer, other := 1-smoothing, smoothing/float64(max(cols, 1))
	sum := f.Custom(op, []*nn.Tensor{scores}, 1, 1, func(out []float32) {
		out[0] = total(threads, n, cols, func(i int) float64 {
			row := x[i*cols:][:cols]
			sum := softplusSum(row) - other*simd.Sum(row)
			for _, t := range q.Of(int(ids[i])) {
				sum -= answer * float64(row[t])
			}
			return sum
		})
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0])
		parallel.For(threads, n, grain(4*cols), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row, dx := x[i*cols:][:cols], dIn[0][i*cols:][:cols]
				sigmoids(dx, row, float32(d), float32(d*other))
				for _, t := range q.Of(int(ids[i])) {
					dx[t] = float32(d * (1/(1+math.Exp(-float64(row[t]))) - other - answer))
				}
			}
		})
	})
	return &nn.Loss{Sum: sum, Weight: float64(n * cols)}
}

// total is the sum of the values of n rows of that many columns, in the order of the rows.
func total(threads, n, cols int, row func(i int) float64) float32 {
	sums := make([]float64, n)
	parallel.For(threads, n, grain(4*cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sums[i] = row(i)
		}
	})
	all := 0.0
	for _, s := range sums {
		all += s
	}
	return float32(all)
}

// checkQueries panics unless the scores [len(ids),N] are those of the queries ids, whose answers are
// among N entities.
func checkQueries(op string, scores *nn.Tensor, q *Queries, ids []int32) {
	n, cols := scores.Rows(), scores.Cols()
	if n != len(ids) {
		fail(op, "the scores are [%d,%d], of %d queries", n, cols, len(ids))
	}
	for _, i := range ids {
		if i < 0 || int(i) >= q.Len() {
			fail(op, "query %d is none of %d", i, q.Len())
		}
		if a := q.Of(int(i)); int(a[len(a)-1]) >= cols {
			fail(op, "query %d is answered by entity %d, but there are scores of %d entities", i, a[len(a)-1], cols)
		}
	}
}

// exps is the number of exponentials that are computed at a time, in memory on the stack.
const exps = 512

// softplusSum is Σ log(1+e^x). It takes one logarithm of a product of 32 numbers from 1 to 2.
func softplusSum(x []float32) float64 {
	var buf [exps]float32
	sum, product, room := 0.0, 1.0, 32
	for len(x) > 0 {
		part := buf[:min(len(x), exps)]
		for j, v := range x[:len(part)] {
			part[j] = -abs(v)
			sum += float64(max(v, 0))
		}
		simd.Exp(part, part, 0)
		for _, e := range part {
			product *= 1 + float64(e)
			if room--; room == 0 {
				sum, product, room = sum+math.Log(product), 1, 32
			}
		}
		x = x[len(part):]
	}
	return sum + math.Log(product)
}

// sigmoids computes o = scale/(1+e^-x) - minus.
func sigmoids(o, x []float32, scale, minus float32) {
	var buf [exps]float32
	for len(x) > 0 {
		part := buf[:min(len(x), exps)]
		for j, v := range x[:len(part)] {
			part[j] = -v
		}
		simd.Exp(part, part, 0)
		for j, e := range part {
			o[j] = scale/(1+e) - minus
		}
		o, x = o[len(part):], x[len(part):]
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// OneVsAll is the cross-entropy of triples' tails among all entities: scores [len(ids),N] are those of
// the queries ids of q, as [Decoder.Tails] returns them, and each answer of a query is a triple.
//
//	Sum = Σ_i Σ_{t answers i} log Σ_j e^s_ij - s_it
//
// Weight is the number of triples. It equals [nn.CrossEntropy] of one row for each triple, but triples
// with the same query need only one row. ids and q are kept until Backward. It panics with a *tensor.Error
// if the shapes do not fit.
//
// Source: T. Lacroix et al., ICML 2018, arXiv:1806.07297, equation 7.
func OneVsAll(scores *nn.Tensor, q *Queries, ids []int32) *nn.Loss {
	return OneVsAllSmooth(scores, q, ids, 0)
}

// OneVsAllSmooth is [OneVsAll] with labels that give away the probability smoothing, at least 0 and below 1, to all N
// entities alike, as the label_smoothing of torch.nn.functional.cross_entropy:
//
//	Sum = Σ_i Σ_{t answers i} log Σ_j e^s_ij - (1-smoothing)·s_it - smoothing/N · Σ_j s_ij
func OneVsAllSmooth(scores *nn.Tensor, q *Queries, ids []int32, smoothing float64) *nn.Loss {
	const op = "OneVsAll"
	checkQueries(op, scores, q, ids)
	if !(smoothing >= 0 && smoothing < 1) {
		fail(op, "the smoothing of labels is %v; it is at least 0 and below 1", smoothing)
	}
	n, cols := scores.Rows(), scores.Cols()
	f := scores.Fwd()
	x, threads := scores.Data(), f.Config().Threads
	lse := make([]float64, n)
	keep, spread := 1-smoothing, smoothing/float64(max(cols, 1))
	weight := 0
	for _, i := range ids {
		weight += len(q.Of(int(i)))
	}
	sum := f.Custom(op, []*nn.Tensor{scores}, 1, 1, func(out []float32) {
		out[0] = total(threads, n, cols, func(i int) (sum float64) {
			row := x[i*cols:][:cols]
			lse[i] = simd.LogSumExp(row)
			answers := q.Of(int(ids[i]))
			for _, t := range answers {
				sum += lse[i] - keep*float64(row[t])
			}
			if spread > 0 {
				sum -= spread * float64(len(answers)) * simd.Sum(row)
			}
			return sum
		})
	}, func(dOut []float32, dIn [][]float32) {
		d := dOut[0]
		parallel.For(threads, n, grain(4*cols), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				dx, answers := dIn[0][i*cols:][:cols], q.Of(int(ids[i]))
				simd.Exp(dx, x[i*cols:][:cols], float32(lse[i]))
				simd.Scale(dx, dx, d*float32(len(answers)))
				if spread > 0 {
					less := d * float32(spread*float64(len(answers)))
					for j := range dx {
						dx[j] -= less
					}
				}
				for _, t := range answers {
					dx[t] -= d * float32(keep)
				}
			}
		})
	})
	return &nn.Loss{Sum: sum, Weight: float64(weight)}
}

// N3 is the nuclear 3-norm of rows x [n,c]: Σ_i w_i·Σ_c |x_ic|³, as [1,1], where w has a weight for each
// row. If the rows are of complex numbers, as those of [ComplEx], the modulus of each is |x|.
//
// Source: T. Lacroix et al., ICML 2018, arXiv:1806.07297, equation 4.
func N3(f *nn.Fwd, x *nn.Tensor, w []float32, isComplex bool) *nn.Tensor {
	const op = "N3"
	n, c := x.Rows(), x.Cols()
	if len(w) != n || isComplex && c%2 != 0 {
		fail(op, "it has %d weights for rows [%d,%d]; complex numbers have as many imaginary parts as real ones", len(w), n, c)
	}
	in, threads := x.Data(), f.Config().Threads
	k := c
	if isComplex {
		k = c / 2
	}
	// modulus is that of number j of a row.
	modulus := func(row []float32, j int) float64 {
		if isComplex {
			return math.Sqrt(float64(row[j])*float64(row[j]) + float64(row[k+j])*float64(row[k+j]))
		}
		return math.Abs(float64(row[j]))
	}
	return f.Custom(op, []*nn.Tensor{x}, 1, 1, func(out []float32) {
		out[0] = total(threads, n, c, func(i int) (sum float64) {
			for j := range k {
				m := modulus(in[i*c:][:c], j)
				sum += float64(w[i]) * m * m * m
			}
			return sum
		})
	}, func(dOut []float32, dIn [][]float32) {
		parallel.For(threads, n, grain(4*c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row, dx := in[i*c:][:c], dIn[0][i*c:][:c]
				for j := range k {
					g := 3 * float64(dOut[0]) * float64(w[i]) * modulus(row, j)
					dx[j] = float32(g * float64(row[j]))
					if isComplex {
						dx[k+j] = float32(g * float64(row[k+j]))
					}
				}
			}
		})
	})
}
