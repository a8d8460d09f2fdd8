package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
)

// Loss is a loss as a pair: the sum over a batch's rows, and the weight by which the sum of all
// batches of a step is divided, the number of rows that counted. Make a custom loss from the
// operations: Loss{Sum: f.SumAll(…), Weight: rows}. Correct of Count rows were predicted correctly,
// as a by-product; both are 0 if that has no meaning.
//
// On a device, reading Sum or Correct waits for the device; use [Loss.Figures] to read them later.
type Loss struct {
	Sum    *Tensor // [1,1]
	Weight float64
	Count  int64

	correct int64
	figures func() (sum float32, correct int64) // of a device; nil if correct is known
}

// Correct returns the number of the Count rows that were predicted correctly. On a device it waits.
func (l *Loss) Correct() int64 {
	if l.figures != nil {
		_, n := l.figures()
		return n
	}
	return l.correct
}

// SetCorrect sets the number of correct rows and of all rows, for a custom loss.
func (l *Loss) SetCorrect(correct, count int64) {
	l.correct, l.Count, l.figures = correct, count, nil
}

// Figures returns a function that reads Sum and Correct later. On a device their copy to the host
// starts now; figures waits for it, but not for later operations such as Backward. figures may be
// called after the pass, and more than once.
func (l *Loss) Figures() (figures func() (sum float32, correct int64)) {
	sum, correct, rows := l.Sum.Later(), l.correct, l.figures // Sum may differ from the sum that figures returns
	return func() (float32, int64) {
		if rows != nil {
			_, correct = rows()
		}
		return sum(), correct
	}
}

// Mean returns Sum/Weight, NaN for a loss without weight. On a device it waits.
func (l *Loss) Mean() float64 { return float64(l.Sum.Data()[0]) / l.Weight }

// Backward adds the gradient of Sum (not of the mean) to every parameter's G. It panics with a
// [*tensor.Error] if Sum is nil or not [1,1], if its pass records no gradients, and at the second
// call in a pass.
func (l *Loss) Backward() {
	if l == nil || l.Sum == nil {
		fail("Backward", "the loss has no Sum")
	}
	if err := l.Sum.Backward(); err != nil {
		fail("Backward", "%v", phrase.Bare(err))
	}
}

// CrossEntropy is the classification loss
//
//	Sum = Σ_r log Σ_c e^logits[r,c] - logits[r,labels[r]]
//
// over the rows of logits [N, classes] that have a label; a row with label -1 is skipped, and
// Weight is the number of the other rows. Correct counts the rows whose [Argmax] is the label. It
// equals torch.nn.functional.cross_entropy with reduction='sum'. It makes one pass and subtracts
// the maximum from the exponents, so that large logits neither overflow nor hide a small loss.
// labels is kept until Backward.
//
// It panics with a [*tensor.Error] if the number of labels or a label does not fit.
func CrossEntropy(logits *Tensor, labels []int32) *Loss {
	const op = "CrossEntropy"
	l := newLoss(op, logits, labels)
	f, cols := logits.Fwd(), logits.Cols()
	if sum, figures, ok := f.CrossEntropy(logits, labels); ok {
		l.Sum, l.figures = sum, figures
		return l
	}
	x, threads := logits.Data(), f.Config().Threads
	lse, tops := make([]float64, len(labels)), make([]float32, len(labels))
	l.Sum = f.CustomSet(op, []*Tensor{logits}, 1, 1, func(out []float32) {
		out[0] = l.add(threads, cols, labels, func(r int) (float64, bool) {
			row, y := x[r*cols:(r+1)*cols], labels[r]
			lse[r], tops[r] = simd.LogSumExpTop(row)
			right := Argmax(row[:y+1]) == int(y) && (row[y] == tops[r] || math.IsNaN(lse[r]) && Argmax(row) == int(y))
			return lse[r] - float64(row[y]), right
		})
	}, func(dOut []float32, dIn [][]float32) {
		d, dx := float64(dOut[0]), dIn[0]
		parallel.For(threads, len(labels), lossGrain(cols), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				dRow, y := dx[r*cols:(r+1)*cols], int(labels[r])
				if y < 0 {
					clear(dRow)
					continue
				}
				// p - 1 of the label, without cancellation for p near 1.
				dRow[y] = float32(-others(dRow, x[r*cols:(r+1)*cols], y, d, lse[r], tops[r]))
			}
		})
	})
	return l
}

// others writes d·p for the probabilities p of a row of logits, whose log Σ e^x is lse and whose maximum is top, but 0
// for the label y. It returns their sum.
func others(out, row []float32, y int, d, lse float64, top float32) float64 {
	// e^(x-lse) is e^(x-top)·e^(top-lse): the first difference is exact or nearly so, and the second factor is
	// taken in float64.
	simd.Exp(out, row, top)
	out[y] = 0
	scale := d * math.Exp(float64(top)-lse)
	sum := scale * simd.Sum(out)
	simd.Scale(out, out, float32(scale))
	return sum
}

// NLL is the negative log likelihood Sum = -Σ_r logp[r,labels[r]] of log-probabilities [N,
// classes], as returned by f.LogSoftmax; otherwise it is as [CrossEntropy].
func NLL(logp *Tensor, labels []int32) *Loss {
	const op = "NLL"
	l := newLoss(op, logp, labels)
	f, cols, x := logp.Fwd(), logp.Cols(), logp.Data()
	l.Sum = f.Custom(op, []*Tensor{logp}, 1, 1, func(out []float32) {
		out[0] = l.add(f.Config().Threads, cols, labels, func(r int) (float64, bool) {
			row, y := x[r*cols:(r+1)*cols], labels[r]
			return -float64(row[y]), Argmax(row) == int(y)
		})
	}, func(dOut []float32, dIn [][]float32) {
		for r, y := range labels {
			if y >= 0 {
				dIn[0][r*cols+int(y)] -= dOut[0]
			}
		}
	})
	return l
}

// newLoss checks the labels and counts those that are not -1.
func newLoss(op string, x *Tensor, labels []int32) *Loss {
	if x == nil {
		fail(op, "the logits are a nil tensor")
	}
	if len(labels) != x.Rows() {
		fail(op, "the logits are [%d,%d] but there are %d labels", x.Rows(), x.Cols(), len(labels))
	}
	l := &Loss{}
	for r, y := range labels {
		if y < -1 || int(y) >= x.Cols() {
			fail(op, "label %d of row %d is not a class of logits [%d,%d]; classes are 0 to %d, and -1 means unlabelled", y, r, x.Rows(), x.Cols(), x.Cols()-1)
		}
		if y >= 0 {
			l.Count++
		}
	}
	l.Weight = float64(l.Count)
	return l
}

// lossGrain is the number of rows of a chunk, about 4096 elements.
func lossGrain(cols int) int { return max(4096/max(cols, 1), 16) }

// add returns the sum of row(r) over the labelled rows, in fixed chunks combined in order, and
// counts the correct rows.
func (l *Loss) add(threads, cols int, labels []int32, row func(r int) (loss float64, right bool)) float32 {
	grain := lossGrain(cols)
	type part struct {
		loss    float64
		correct int64
	}
	parts := make([]part, parallel.Chunks(len(labels), grain))
	parallel.For(threads, len(labels), grain, func(lo, hi int) {
		var p part
		for r := lo; r < hi; r++ {
			if labels[r] < 0 {
				continue
			}
			loss, right := row(r)
			p.loss += loss
			if right {
				p.correct++
			}
		}
		parts[lo/grain] = p
	})
	var sum float64
	for _, p := range parts {
		sum += p.loss
		l.correct += p.correct
	}
	return float32(sum)
}
