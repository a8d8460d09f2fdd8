package nn

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

// Accuracy counts the rows of logits [len(labels), cols] with a label (>= 0), and those of them
// whose [Argmax] is the label. Counts of parts add up to the exact accuracy of the whole.
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

// RowCrossEntropy is the cross-entropy of one labelled row of logits, as [CrossEntropy] sums it.
func RowCrossEntropy(logits []float32, label int) float64 {
	return logSumExp(logits) - float64(logits[label])
}

// F1 counts the answers to yes-or-no questions, such as whether a node belongs to a class. Counts
// of parts add up exactly to those of the whole.
type F1 struct {
	TruePositives, FalsePositives, FalseNegatives int64
}

// AddRow counts a row of logits with its labels, 0 or 1; a label of -1 is unknown and skipped. A
// logit above 0 means yes.
func (c *F1) AddRow(logits []float32, labels []int8) {
	for i, y := range labels {
		switch yes := logits[i] > 0; {
		case y < 0 || y == 0 && !yes:
		case y == 0:
			c.FalsePositives++
		case yes:
			c.TruePositives++
		default:
			c.FalseNegatives++
		}
	}
}

// Micro is the micro-averaged F1 score 2·TP/(2·TP + FP + FN) of all questions together, or 0 if no
// answer is yes and none should be. It equals sklearn.metrics.f1_score(average="micro"); GraphSAGE
// and GraphSAINT report it for PPI, Yelp and Amazon. If each row has one class and one answer, it
// equals the accuracy.
//
// Source: C. J. van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7, with all
// questions pooled.
func (c F1) Micro() float64 {
	if c == (F1{}) {
		return 0
	}
	return 2 * float64(c.TruePositives) / float64(2*c.TruePositives+c.FalsePositives+c.FalseNegatives)
}
