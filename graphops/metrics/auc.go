package metrics

import (
	"math"
	"slices"
)

// ROCAUC is the area under the ROC curve: the fraction of pairs of a positive (label 1) and a
// negative (label 0) in which the positive has the higher score; pairs with equal scores count
// half. Labels of -1 are skipped. Pairs are counted in integers, so the result is exact up to one
// rounding and does not depend on the order of rows. It is NaN if there is no positive or no
// negative, or if the score of a labelled row is NaN. It equals sklearn.metrics.roc_auc_score.
// Cost: a sort.
//
// It panics with a [*tensor.Error] if the lengths differ or a label has another value.
func ROCAUC(scores []float32, labels []int8) float64 {
	rows, negatives, positives, ok := ranked("ROCAUC", scores, labels)
	if !ok || positives == 0 || negatives == 0 {
		return math.NaN()
	}
	// Twice the number of pairs: below 2^63 for the 2^31 rows of a graph.
	var twice, below uint64
	for i := 0; i < len(rows); {
		j := i
		var pos, neg uint64
		for ; j < len(rows) && rows[j]>>1 == rows[i]>>1; j++ {
			pos += rows[j] & 1
			neg += 1 - rows[j]&1
		}
		twice += pos * (2*below + neg)
		below += neg
		i = j
	}
	return float64(twice) / (2 * float64(positives) * float64(negatives))
}

// AveragePrecision is the mean, over the positives (label 1), of the precision among the rows with at least their score:
// the area under the precision-recall curve as a step function, Σ (Rᵢ − Rᵢ₋₁) Pᵢ over descending scores, where rows
// with equal scores are one step. Labels of -1 are skipped. Rows are counted in integers, so the result does not depend
// on their order. It is NaN if there is no positive or no negative, or if the score of a labelled row is NaN; otherwise
// it equals sklearn.metrics.average_precision_score. Cost: a sort.
//
// It panics with a [*tensor.Error] if the lengths differ or a label has another value.
func AveragePrecision(scores []float32, labels []int8) float64 {
	rows, negatives, positives, ok := ranked("AveragePrecision", scores, labels)
	if !ok || positives == 0 || negatives == 0 {
		return math.NaN()
	}
	sum := 0.0
	var above, seen uint64 // positives and rows with at least the score
	for i := len(rows); i > 0; {
		j := i
		var pos uint64
		for ; j > 0 && rows[j-1]>>1 == rows[i-1]>>1; j-- {
			pos += rows[j-1] & 1
			seen++
		}
		above += pos
		sum += float64(pos) * float64(above) / float64(seen)
		i = j
	}
	return sum / float64(positives)
}

// ranked returns the labelled rows by ascending score: twice the order of the score, and 1 more for a positive. ok is
// false if a score is NaN.
func ranked(op string, scores []float32, labels []int8) (rows []uint64, negatives, positives uint64, ok bool) {
	if len(scores) != len(labels) {
		fail(op, "there are %d scores but %d labels", len(scores), len(labels))
	}
	rows, ok = make([]uint64, 0, len(scores)), true
	for i, y := range labels {
		switch y {
		case -1:
			continue
		case 0:
			negatives++
		case 1:
			positives++
		default:
			fail(op, "label %d is %d; labels are 0, 1, or -1 for an unknown label", i, y)
		}
		ok = ok && !math.IsNaN(float64(scores[i]))
		rows = append(rows, uint64(order(scores[i]))<<1|uint64(y))
	}
	slices.Sort(rows)
	return rows, negatives, positives, ok
}

// order returns a number that is larger for a larger score, and equal for equal ones; the score is a number.
func order(score float32) uint32 {
	b := math.Float32bits(score + 0) // the sum of -0 and 0 is 0
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// BinaryScores returns the scores by which ROCAUC ranks the rows of a two-class classifier with
// logits [n, 2]: the second minus the first logit, a monotone function of the probability of class
// 1. Logits with one column are returned as scores.
func BinaryScores(logits []float32, cols int) []float32 {
	switch cols {
	case 1:
		return slices.Clone(logits)
	case 2:
		scores := make([]float32, len(logits)/2)
		for r := range scores {
			scores[r] = logits[2*r+1] - logits[2*r]
		}
		return scores
	}
	fail("BinaryScores", "the logits have %d columns; the ROC AUC needs two classes", cols)
	return nil
}

// MultiLabelAUC is the ROC AUC of each column of scores [n, cols] with labels [n·cols] (0, 1, or -1
// for unknown), and the mean over the columns with both positives and negatives: OGB's rocauc. It
// is NaN for the other columns, and the mean is NaN if there are no such columns.
func MultiLabelAUC(scores []float32, cols int, labels []int8) (mean float64, column []float64) {
	return eachLabel("MultiLabelAUC", scores, cols, labels, ROCAUC)
}

// MultiLabelAveragePrecision is [AveragePrecision] of each column of scores [n, cols], and its mean, as [MultiLabelAUC] is
// for the ROC AUC.
func MultiLabelAveragePrecision(scores []float32, cols int, labels []int8) (mean float64, column []float64) {
	return eachLabel("MultiLabelAveragePrecision", scores, cols, labels, AveragePrecision)
}

// MultiLabelAccuracy is, for each column of logits [n, cols], the fraction of known labels that are
// 1 exactly if the logit is above 0, and the mean over the columns with labels: OGB's acc.
func MultiLabelAccuracy(logits []float32, cols int, labels []int8) (mean float64, column []float64) {
	return eachLabel("MultiLabelAccuracy", logits, cols, labels, func(z []float32, y []int8) float64 {
		var right, count int
		for i := range y {
			if y[i] < 0 {
				continue
			}
			count++
			if (z[i] > 0) == (y[i] == 1) {
				right++
			}
		}
		return float64(right) / float64(count)
	})
}

// eachLabel computes a metric for each column, and the mean of those that are not NaN.
func eachLabel(op string, x []float32, cols int, labels []int8, metric func([]float32, []int8) float64) (mean float64, column []float64) {
	if len(x) != len(labels) || cols < 1 || len(x)%cols != 0 {
		fail(op, "%d values and %d labels do not form rows of %d columns", len(x), len(labels), cols)
	}
	n := len(x) / cols
	v, y := make([]float32, n), make([]int8, n)
	sum, count := 0.0, 0
	for c := range cols {
		for r := range n {
			v[r], y[r] = x[r*cols+c], labels[r*cols+c]
		}
		m := metric(v, y)
		column = append(column, m)
		if !math.IsNaN(m) {
			sum += m
			count++
		}
	}
	return sum / float64(count), column
}
