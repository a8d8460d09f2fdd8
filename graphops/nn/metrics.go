package nn

// Argmax is the index of the largest element, the first of equal ones; 0 for an
// empty row and where the comparison with NaN decides. It is the class that
// accuracy counts.
func Argmax(row []float32) int {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// Accuracy counts the rows of logits [len(labels), cols] that have a label
// (>= 0), and those of them whose [Argmax] is the label. Counts of parts add up
// to the exact accuracy of the whole.
func Accuracy(logits []float32, cols int, labels []int32) (correct, count int64) {
	if len(logits) != len(labels)*cols {
		fail("Accuracy", "%d labels need logits [%d,%d] but there are %d elements", len(labels), len(labels), cols, len(logits))
	}
	for r, y := range labels {
		if y < 0 {
			continue
		}
		count++
		if Argmax(logits[r*cols:(r+1)*cols]) == int(y) {
			correct++
		}
	}
	return correct, count
}
