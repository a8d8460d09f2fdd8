package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
)

// CrossEntropyOptions change [CrossEntropy]: classes of different weight, and labels that are not certain. The zero
// value changes nothing.
type CrossEntropyOptions struct {
	// Weights are the weights of the classes, one each, 0 or more; nil means that all are 1. Rare classes get large
	// weights, see [BalancedWeights].
	Weights []float32 `json:",omitempty"`
	// Smoothing is the probability ε that a label is any class, all equally likely: the target is 1-ε+ε/C for the
	// label and ε/C for each other of C classes. It is below 1; 0 means that labels are certain.
	//
	// Source: C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the Inception architecture for
	// computer vision", CVPR 2016, section 7, doi:10.1109/CVPR.2016.308.
	Smoothing float64 `json:",omitempty"`
}

// Check returns an error if the options are not for this number of classes.
func (o CrossEntropyOptions) Check(classes int) error {
	if o.Weights != nil && len(o.Weights) != classes {
		return phrase.Errorf("nn", "there are %d class weights for %d classes; each class needs one", len(o.Weights), classes)
	}
	var sum float64
	for c, w := range o.Weights {
		if !(w >= 0) || math.IsInf(float64(w), 0) {
			return phrase.Errorf("nn", "the weight of class %d is %v; it must be a number, 0 or more", c, w)
		}
		sum += float64(w)
	}
	if o.Weights != nil && sum == 0 {
		return phrase.Errorf("nn", "all %d class weights are 0, so nothing would be learned", classes)
	}
	if !(o.Smoothing >= 0 && o.Smoothing < 1) {
		return phrase.Errorf("nn", "the smoothing of labels is %v; it must be 0 or more and below 1", o.Smoothing)
	}
	return nil
}

// Loss is [CrossEntropy] with the options: with class weights w, C classes and the smoothing ε it is
//
//	Sum = Σ_r (1-ε)·w[y]·(lse - x[y]) + ε/C · Σ_c w[c]·(lse - x[c])    (x = logits[r], y = labels[r])
//
// where lse is log Σ_c e^x[c], and Weight is the sum of w[y] over the rows with a label. It equals
// torch.nn.functional.cross_entropy with weight and label_smoothing. On a device it copies the logits to the host
// and their gradient back. It panics as CrossEntropy does, and if Check fails.
func (o CrossEntropyOptions) Loss(logits *Tensor, labels []int32) *Loss {
	const op = "CrossEntropy"
	if logits == nil || o.Weights == nil && o.Smoothing == 0 {
		return CrossEntropy(logits, labels)
	}
	if err := o.Check(logits.Cols()); err != nil {
		fail(op, "%v", phrase.Bare(err))
	}
	l := newLoss(op, logits, labels)
	f, cols := logits.Fwd(), logits.Cols()
	weight := func(c int) float64 {
		if o.Weights == nil {
			return 1
		}
		return float64(o.Weights[c])
	}
	l.Weight = 0
	for _, y := range labels {
		if y >= 0 {
			l.Weight += weight(int(y))
		}
	}
	keep, spread := 1-o.Smoothing, o.Smoothing/float64(cols)
	var all float64 // Σ_c w[c]
	for c := range cols {
		all += weight(c)
	}
	x, threads := logits.Data(), f.Config().Threads
	lse := make([]float64, len(labels))
	l.Sum = f.Custom(op, []*Tensor{logits}, 1, 1, func(out []float32) {
		out[0] = l.add(threads, cols, labels, func(r int) (float64, bool) {
			row, y := x[r*cols:(r+1)*cols], int(labels[r])
			lse[r] = simd.LogSumExp(row)
			loss := keep * weight(y) * (lse[r] - float64(row[y]))
			if spread > 0 {
				var others float64
				for c, v := range row {
					others += weight(c) * (lse[r] - float64(v))
				}
				loss += spread * others
			}
			return loss, Argmax(row) == y
		})
	}, func(dOut []float32, dIn [][]float32) {
		d := float64(dOut[0])
		parallel.For(threads, len(labels), lossGrain(cols), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				if labels[r] < 0 {
					continue
				}
				y, dRow := int(labels[r]), dIn[0][r*cols:(r+1)*cols]
				sum := others(dRow, x[r*cols:(r+1)*cols], y, d*(keep*weight(y)+spread*all), lse[r], simd.Greatest(x[r*cols:(r+1)*cols])) // times that of the targets
				for c := range dRow {
					if spread > 0 && c != y {
						target := d * spread * weight(c)
						sum -= target
						dRow[c] = float32(float64(dRow[c]) - target)
					}
				}
				dRow[y] = float32(-sum) // a row's gradients add up to 0; this way without cancellation for p near 1
			}
		})
	})
	return l
}

// BalancedWeights returns class weights that give each class the same total: rows/(classes·count) of a class with
// count of the labelled rows, as scikit-learn's "balanced", and 0 for a class without rows. classes counts only classes with
// rows, so that the mean weight of a row is 1. Labels of -1 are left out.
func BalancedWeights(labels []int32, classes int) []float32 {
	counts := make([]int, classes)
	rows, present := 0, 0
	for _, y := range labels {
		if y < 0 {
			continue
		}
		if int(y) >= classes {
			fail("BalancedWeights", "label %d is not one of %d classes", y, classes)
		}
		if counts[y]++; counts[y] == 1 {
			present++
		}
		rows++
	}
	w := make([]float32, classes)
	for c, n := range counts {
		if n > 0 {
			w[c] = float32(float64(rows) / (float64(present) * float64(n)))
		}
	}
	return w
}
