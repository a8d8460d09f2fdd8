package numbers

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/phrase"
)

// LossOptions say how numbers are learned. Options of tasks that predict numbers embed them.
type LossOptions struct {
	// Loss is squared, absolute, huber or quantile; "" means squared. See [nn.Regression]. It is computed on standardised
	// targets; metrics and outputs have the unit of the targets.
	Loss string `json:",omitempty" flag:"loss" help:"squared, absolute, huber or quantile (default squared)"`
	// Delta is where the loss huber changes to absolute errors, in deviations of a target; 0 means 1.
	Delta float64 `json:",omitempty" flag:"delta" help:"<deviations> where huber becomes absolute (default 1)" positive:"true"`
	// Quantiles are those that the loss quantile predicts, between 0 and 1 and ascending; nil means the median.
	Quantiles []float64 `json:",omitempty" flag:"quantiles" help:"<0.1,0.5,0.9> predicted by the loss quantile"`
	// Bounded keeps predictions within the range from the 2nd to the 98th percentile of the training targets.
	Bounded bool `json:",omitempty" flag:"bounded" help:"keep predictions within training targets' 2 to 98 %"`
	// Scale is how targets are standardised. The task sets it from the training split, and its runs record it, so that every
	// output of their networks is in the unit of the targets.
	Scale Scale `json:",omitzero"`
}

// Scale has, for each target, the mean and the deviation (√(Σ(y-mean)²/n)) of the known training targets, and the bounds of
// predictions if they have some.
type Scale struct {
	Mean, Deviation []float64
	Low, High       []float64 `json:",omitempty"`
}

// Complete checks the options, and sets Scale from the rows train of the targets, whose names are in names or nil. Kind is what
// rows are: "node". It returns an error for a target of which no training row is known, for one whose known training rows
// are all equal, and for one that is infinite.
func (o *LossOptions) Complete(targets *dataset.Matrix, names []string, train []int32, kind string) error {
	if err := o.regression().Check(); err != nil {
		return err
	}
	o.Scale = Scale{}
	for t := range targets.Cols {
		name := fmt.Sprintf("target %d", t)
		if t < len(names) {
			name = fmt.Sprintf("target %q", names[t])
		}
		var known []float64
		for _, v := range train {
			if v < 0 || int(v) >= targets.Rows {
				return fmt.Errorf("numbers: the training split has %s %d, and there are the %ss 0 to %d; gnb data check finds what is wrong", kind, v, kind, targets.Rows-1)
			}
			y := float64(targets.F32[int(v)*targets.Cols+t])
			if math.IsInf(y, 0) {
				return fmt.Errorf("numbers: %s of %s %d is %v; a target is a number, or NaN if unknown", name, kind, v, y)
			}
			if y == y {
				known = append(known, y)
			}
		}
		if len(known) == 0 {
			return fmt.Errorf("numbers: %s is unknown (NaN) for all %d training %ss, so it cannot be learned; leave it out, or give the training split known ones", name, len(train), kind)
		}
		mean, squares := 0.0, 0.0
		for _, y := range known {
			mean += y / float64(len(known))
		}
		for _, y := range known {
			squares += (y - mean) * (y - mean)
		}
		slices.Sort(known)
		if known[0] == known[len(known)-1] {
			return fmt.Errorf("numbers: %s is %v for all %d training %ss where it is known, so there is nothing to learn; check the column, or leave it out", name, known[0], len(known), kind)
		}
		o.Scale.Mean, o.Scale.Deviation = append(o.Scale.Mean, mean), append(o.Scale.Deviation, math.Sqrt(squares/float64(len(known))))
		if o.Bounded {
			o.Scale.Low, o.Scale.High = append(o.Scale.Low, percentile(known, 0.02)), append(o.Scale.High, percentile(known, 0.98))
		}
	}
	return nil
}

// percentile returns the share p of ascending numbers, interpolated as numpy.quantile does.
func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	lo := int(at)
	hi := min(lo+1, len(sorted)-1)
	return sorted[lo] + (at-float64(lo))*(sorted[hi]-sorted[lo])
}

func (o *LossOptions) regression() nn.Regression {
	return nn.Regression{Kind: o.Loss, Delta: o.Delta, Quantiles: o.Quantiles}
}

// Columns is the number of a network's outputs for a number of targets: one for each target and quantile.
func (o *LossOptions) Columns(targets int) int { return o.regression().Columns(targets) }

// ColumnNames returns the names of the columns of predictions of targets, which are given by their names, or by their numbers as
// text: "price", "target_0", or with Quantiles "price_q0.1" and so on.
func (o *LossOptions) ColumnNames(targets []string) (names []string) {
	for _, target := range targets {
		name := phrase.CleanLine(target)
		if _, err := strconv.Atoi(name); err == nil {
			name = "target_" + name
		}
		if len(o.Quantiles) == 0 {
			names = append(names, name)
		}
		for _, q := range o.Quantiles {
			names = append(names, name+"_q"+strconv.FormatFloat(q, 'g', -1, 64))
		}
	}
	return names
}

// Targets is the number of targets of a task whose options are complete.
func (o *LossOptions) Targets() int { return len(o.Scale.Mean) }

// LossOf returns the loss of a network's outputs for rows of targets [N, Targets] in their unit, which it standardises.
func (o *LossOptions) LossOf(out *nn.Tensor, targets []float32) *nn.Loss {
	n := o.Targets()
	standard := make([]float32, len(targets))
	for i, y := range targets {
		standard[i] = float32((float64(y) - o.Scale.Mean[i%n]) / o.Scale.Deviation[i%n])
	}
	return o.regression().Loss(out, standard, nil)
}

// Undo puts the predictions of a network's row, in the unit of the targets, into to: for each target one number or, with
// Quantiles, one for each of them. to and row have Columns(Targets) numbers, and may be the same.
func (o *LossOptions) Undo(to, row []float32) {
	per := len(row) / o.Targets()
	for i, x := range row {
		t := i / per
		y := float64(x)*o.Scale.Deviation[t] + o.Scale.Mean[t]
		if o.Bounded {
			y = min(max(y, o.Scale.Low[t]), o.Scale.High[t])
		}
		to[i] = float32(y)
	}
}

// Middle puts the prediction that metrics measure into to [Targets], from predictions that Undo made: each target's own or,
// with Quantiles, that of the quantile next to the median.
func (o *LossOptions) Middle(to, predictions []float32) {
	per, best := len(predictions)/o.Targets(), 0
	for q := range o.Quantiles {
		if math.Abs(o.Quantiles[q]-0.5) < math.Abs(o.Quantiles[best]-0.5) {
			best = q
		}
	}
	for t := range to {
		to[t] = predictions[t*per+best]
	}
}
