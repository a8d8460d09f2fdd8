package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Regression is a loss of predicted numbers. With the error e = x - y of a prediction x of the target y it is, for each known target,
//
//	"squared"    e²                                        (torch.nn.MSELoss)
//	"absolute"   |e|                                       (torch.nn.L1Loss)
//	"huber"      e²/2 if |e| ≤ Delta, Delta·(|e| - Delta/2) otherwise    (torch.nn.HuberLoss)
//	"quantile"   Σ_q max(-q·e, (1-q)·e) / Q                (the pinball loss, of Q quantiles at once)
type Regression struct {
	// Kind is squared, absolute, huber or quantile; "" means squared.
	Kind string `json:",omitempty"`
	// Delta is where huber changes from squares to absolute errors, above 0; 0 means 1.
	Delta float64 `json:",omitempty"`
	// Quantiles are those of the loss quantile, between 0 and 1 and ascending; nil means the median, 0.5. A network has a column
	// for each of them: those of the first target, then those of the second.
	Quantiles []float64 `json:",omitempty"`
}

// Check returns an error for options without meaning.
func (o Regression) Check() error {
	switch o.Kind {
	case "", "squared", "absolute", "huber", "quantile":
	default:
		return phrase.Errorf("nn", "the loss of numbers is %q; it is squared, absolute, huber or quantile", o.Kind)
	}
	if o.Delta != 0 && o.Kind != "huber" {
		return phrase.Errorf("nn", "Delta is %v, but only the loss huber has one; leave it out", o.Delta)
	}
	if !(o.Delta >= 0) || math.IsInf(o.Delta, 0) {
		return phrase.Errorf("nn", "Delta of the loss huber is %v; it must be a number above 0, or 0 for 1", o.Delta)
	}
	if o.Quantiles != nil && o.Kind != "quantile" {
		return phrase.Errorf("nn", "there are quantiles, but only the loss quantile has some; leave them out")
	}
	last := 0.0
	for _, q := range o.Quantiles {
		if !(q > last && q < 1) {
			return phrase.Errorf("nn", "the quantiles are %v; they must be between 0 and 1, and each above the one before", o.Quantiles)
		}
		last = q
	}
	return nil
}

// Columns is the number of a network's outputs for a number of targets.
func (o Regression) Columns(targets int) int { return targets * max(1, len(o.Quantiles)) }

// Loss returns the loss of predictions [N, Columns(T)] of targets [N, T], row-major; a target that is NaN is missing and not
// counted:
//
//	Sum = Σ_{r,t} weights[r]·loss(x[r,t], y[r,t]),  Weight = Σ_{r,t} weights[r]    over the known targets
//
// weights are those of the rows, 0 or more; nil means that all are 1. Mean equals PyTorch's for reduction "mean". No row is
// right or wrong, so Correct is 0. targets and weights are kept until Backward. The gradient where the loss has a corner is 0 for
// "absolute", as PyTorch's, and q-weighted as if e were above 0 for "quantile".
//
// It copies the predictions of a device to the host and their gradient back. It panics with a [*tensor.Error] if Check fails, if
// sizes do not fit, for an infinite target, and for a weight that is below 0 or not finite.
func (o Regression) Loss(predictions *Tensor, targets, weights []float32) *Loss {
	const op = "Regression"
	if err := o.Check(); err != nil {
		fail(op, "%v", phrase.Bare(err))
	}
	if predictions == nil {
		fail(op, "the predictions are a nil tensor")
	}
	rows, cols, quantiles := predictions.Rows(), predictions.Cols(), o.Quantiles
	if quantiles == nil {
		quantiles = []float64{0.5}
	}
	per := len(quantiles)
	of := cols / per
	if cols%per != 0 || len(targets) != rows*of {
		fail(op, "the predictions are [%d,%d] of %d quantiles, but there are %d targets; give %d for each row", rows, cols, per, len(targets), of)
	}
	if weights != nil && len(weights) != rows {
		fail(op, "there are %d weights for %d rows; give one per row, or none", len(weights), rows)
	}
	l := &Loss{}
	weight := func(r int) float64 {
		if weights == nil {
			return 1
		}
		return float64(weights[r])
	}
	for r := range rows {
		w := weight(r)
		if !(w >= 0) || math.IsInf(w, 0) {
			fail(op, "the weight of row %d is %v; it must be a number, 0 or more", r, w)
		}
		for t, y := range targets[r*of : (r+1)*of] {
			if math.IsInf(float64(y), 0) {
				fail(op, "target %d of row %d is %v; targets are finite, or NaN if they are missing", t, r, y)
			}
			if y == y {
				l.Weight += w
				l.Count++
			}
		}
	}
	f, x := predictions.Fwd(), predictions.Data()
	threads, grain := f.Config().Threads, lossGrain(cols)
	l.Sum = f.Custom(op, []*Tensor{predictions}, 1, 1, func(out []float32) {
		out[0] = float32(parallel.Sum(threads, rows, grain, func(lo, hi int) (sum float64) {
			for i := lo * cols; i < hi*cols; i++ {
				if y := targets[i/per]; y == y {
					loss, _ := o.one(float64(x[i])-float64(y), quantiles[i%per])
					sum += weight(i/cols) * loss / float64(per)
				}
			}
			return sum
		}))
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0]) / float64(per)
		parallel.For(threads, rows, grain, func(lo, hi int) {
			for i := lo * cols; i < hi*cols; i++ {
				if y := targets[i/per]; y == y {
					_, slope := o.one(float64(x[i])-float64(y), quantiles[i%per])
					dIn[0][i] += float32(d * weight(i/cols) * slope)
				}
			}
		})
	})
	return l
}

// one returns the loss of an error and its derivative.
func (o Regression) one(e, quantile float64) (loss, slope float64) {
	switch o.Kind {
	case "absolute":
		switch {
		case e > 0:
			return e, 1
		case e < 0:
			return -e, -1
		}
		return e, e // 0, or NaN
	case "huber":
		delta := o.Delta
		if delta == 0 {
			delta = 1
		}
		if math.Abs(e) <= delta {
			return e * e / 2, e
		}
		return delta * (math.Abs(e) - delta/2), math.Copysign(delta, e)
	case "quantile":
		if e < 0 {
			return -quantile * e, -quantile
		}
		return (1 - quantile) * e, 1 - quantile
	}
	return e * e, 2 * e
}
