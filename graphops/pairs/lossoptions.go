package pairs

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
)

// LossOptions change [BCE] and [Softmax]: edges that weigh more than negatives, and labels that are not certain. The
// zero value changes nothing.
type LossOptions struct {
	// PosWeight is the weight of an edge beside a negative in the binary cross-entropy, as PyTorch's pos_weight;
	// 0 means 1. With k negatives for each edge, k gives both the same weight in total.
	PosWeight float64 `json:",omitempty"`
	// Smoothing is the probability that a label gives away: the binary cross-entropy has 1-Smoothing/2 for an edge
	// and Smoothing/2 for a negative, and the softmax gives Smoothing to its whole group alike. 0 means none.
	Smoothing float64 `json:",omitempty"`
}

// Check returns an error for a number without meaning.
func (o LossOptions) Check() error {
	switch {
	case !(o.PosWeight >= 0) || math.IsInf(o.PosWeight, 0):
		return fmt.Errorf("pairs: the weight of edges is %v; it is a number above 0 (0 means 1)", o.PosWeight)
	case !(o.Smoothing >= 0 && o.Smoothing < 1):
		return fmt.Errorf("pairs: the smoothing of labels is %v; it is at least 0 and below 1", o.Smoothing)
	}
	return nil
}

// BCE is [BCE] with the options: with p = PosWeight and y = 1-Smoothing/2 for edges or Smoothing/2 for negatives,
//
//	Sum = Σ p·y·log(1+e^-s) + (1-y)·log(1+e^s)
//
// Weight is the number of scores, whatever PosWeight is, as torch.nn.functional.binary_cross_entropy_with_logits
// divides. It panics with a *tensor.Error if the options or the shapes have no meaning.
func (o LossOptions) BCE(scores *nn.Tensor, perEdge int) *nn.Loss {
	if o == (LossOptions{}) {
		return BCE(scores, perEdge)
	}
	const op, grain = "BCE", 4096
	o.must(op)
	x := groups(op, scores, perEdge)
	p, n, group := o.PosWeight, x.Rows()*x.Cols(), x.Cols()
	if p == 0 {
		p = 1
	}
	// at returns the factors of log(1+e^-s) and of log(1+e^s) of a score.
	at := func(i int) (pos, neg float64) {
		y := o.Smoothing / 2
		if i%group == 0 {
			y = 1 - y
		}
		return p * y, 1 - y
	}
	f, z := x.Fwd(), x.Data()
	threads := f.Config().Threads
	l := &nn.Loss{Weight: float64(n)}
	l.Sum = f.Custom(op, []*nn.Tensor{x}, 1, 1, func(out []float32) {
		sums := make([]float64, parallel.Chunks(n, grain))
		right := make([]int64, len(sums))
		parallel.For(threads, n, grain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				pos, neg := at(i)
				v := float64(z[i])
				small := math.Log1p(math.Exp(-math.Abs(v)))
				sums[lo/grain] += pos*(small+max(-v, 0)) + neg*(small+max(v, 0))
				if (v > 0) == (i%group == 0) {
					right[lo/grain]++
				}
			}
		})
		sum, correct := 0.0, int64(0)
		for c, s := range sums {
			sum, correct = sum+s, correct+right[c]
		}
		l.SetCorrect(correct, int64(n))
		out[0] = float32(sum)
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0])
		parallel.For(threads, n, grain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				pos, neg := at(i)
				v := float64(z[i])
				dIn[0][i] = float32(d * (neg/(1+math.Exp(-v)) - pos/(1+math.Exp(v))))
			}
		})
	})
	return l
}

// Softmax is [Softmax] with the Smoothing of the options, as the label_smoothing of
// torch.nn.functional.cross_entropy. It panics as Softmax does, and for a PosWeight, which has no meaning where an
// edge and its negatives are one choice.
func (o LossOptions) Softmax(scores *nn.Tensor, perEdge int) *nn.Loss {
	const op = "Softmax"
	switch {
	case o == (LossOptions{}):
		return Softmax(scores, perEdge)
	case o.PosWeight != 0:
		lossFail(op, "the weight of edges is %v, and the softmax of an edge and its negatives has none", o.PosWeight)
	case perEdge < 1:
		lossFail(op, "there are %d negatives for each edge; it needs at least one", perEdge)
	}
	o.must(op)
	x := groups(op, scores, perEdge)
	return nn.CrossEntropyOptions{Smoothing: o.Smoothing}.Loss(x, make([]int32, x.Rows()))
}

func (o LossOptions) must(op string) {
	if err := o.Check(); err != nil {
		lossFail(op, "%v", err)
	}
}
