package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
)

// BCEWithLogits is the loss of multi-label classification: every column is a separate yes-or-no
// question, answered by the sigmoid of a logit,
//
//	Sum = Σ_{r,c} log(1 + e^z) - y·z,  z = logits[r,c], y = labels[r·cols+c]
//
// over the labels that are 0 or 1; a label -1 is unknown and skipped. Weight is the number of known
// labels, so that Mean equals torch.nn.functional.binary_cross_entropy_with_logits for them.
// Correct counts the labels that are 1 exactly if the logit is above 0. labels is kept until
// Backward.
//
// It panics with a [*tensor.Error] if the number of labels or a label does not fit.
func BCEWithLogits(logits *Tensor, labels []int8) *Loss {
	const op = "BCEWithLogits"
	if logits == nil {
		fail(op, "the logits are a nil tensor")
	}
	if len(labels) != logits.Rows()*logits.Cols() {
		fail(op, "the logits are [%d,%d] but there are %d labels; give one label per logit", logits.Rows(), logits.Cols(), len(labels))
	}
	l := &Loss{}
	for i, y := range labels {
		if y < -1 || y > 1 {
			fail(op, "label %d of row %d is %d; labels are 0, 1, or -1 for an unknown label", i%logits.Cols(), i/logits.Cols(), y)
		}
		if y >= 0 {
			l.Count++
		}
	}
	l.Weight = float64(l.Count)
	f, z := logits.Fwd(), logits.Data()
	threads := f.Config().Threads
	const grain = 4096
	l.Sum = f.Custom(op, []*Tensor{logits}, 1, 1, func(out []float32) {
		sums := make([]float64, parallel.Chunks(len(labels), grain))
		right := make([]int64, len(sums))
		parallel.For(threads, len(labels), grain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				y, v := labels[i], float64(z[i])
				if y < 0 {
					continue
				}
				sums[lo/grain] += bce(v, y)
				if (v > 0) == (y == 1) {
					right[lo/grain]++
				}
			}
		})
		sum := 0.0
		for c, s := range sums {
			sum += s
			l.correct += right[c]
		}
		out[0] = float32(sum)
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0])
		parallel.For(threads, len(labels), grain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				switch v := float64(z[i]); labels[i] {
				case 0:
					dIn[0][i] = float32(d / (1 + math.Exp(-v)))
				case 1: // σ(v) - 1, without cancellation for σ near 1
					dIn[0][i] = float32(-d / (1 + math.Exp(v)))
				}
			}
		})
	})
	return l
}

// bce is log(1 + e^v) - y·v, computed with log(1 + e^v) = max(v, 0) + log(1 + e^-|v|), which cannot
// overflow.
func bce(v float64, y int8) float64 {
	return max(v, 0) - float64(y)*v + math.Log1p(math.Exp(-math.Abs(v)))
}

// RowBCE is the loss of one row of logits, as [BCEWithLogits] sums it, over its count labels that
// are not -1.
func RowBCE(logits []float32, labels []int8) (sum float64, count int64) {
	for i, y := range labels {
		if y >= 0 {
			sum += bce(float64(logits[i]), y)
			count++
		}
	}
	return sum, count
}
