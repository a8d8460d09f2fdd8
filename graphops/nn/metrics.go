package nn

import "github.com/graphnb/graphnb/internal/simd"

// Argmax returns the index of the largest element, the first if several are equal. It returns 0 for
// an empty row, and may return any index if the row contains NaN. Accuracy uses it as the predicted
// class.
func Argmax(row []float32) int {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// RowCrossEntropy is the cross-entropy of one labelled row of logits, as [CrossEntropy] sums it.
func RowCrossEntropy(logits []float32, label int) float64 {
	return simd.LogSumExp(logits) - float64(logits[label])
}
