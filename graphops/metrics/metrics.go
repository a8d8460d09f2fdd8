// Package metrics measures predictions of classes, labels and numbers, as torchmetrics and scikit-learn do.
//
// A [Metric] is a value that training chooses by name. Its [Tally] counts the rows of each rank, and tallies merge to the bits
// of one. The functions measure plain slices. Metrics of links are in package pairs. Misuse panics with a [*tensor.Error], as in package nn, and nn.Try
// turns the panic into an error.
package metrics

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Accuracy counts the rows of logits [len(labels), cols] with a label (>= 0), and those of them
// whose [nn.Argmax] is the label. Counts of parts add up to the exact accuracy of the whole.
func Accuracy(logits []float32, cols int, labels []int32) (correct, count int64) {
	if len(logits) != len(labels)*cols {
		fail("Accuracy", "%d labels need logits [%d,%d] but there are %d elements", len(labels), len(labels), cols, len(logits))
	}
	for r, y := range labels {
		if y < 0 {
			continue
		}
		count++
		if nn.Argmax(logits[r*cols:(r+1)*cols]) == int(y) {
			correct++
		}
	}
	return correct, count
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

// MacroF1 is the mean of [F1.Micro] over the classes that occur among labels or answers, one F1 each; NaN if none does. For
// nodes of one class each it equals sklearn.metrics.f1_score(average="macro").
func MacroF1(classes []F1) float64 {
	sum, n := 0.0, 0
	for _, c := range classes {
		if c != (F1{}) {
			sum += c.Micro()
			n++
		}
	}
	return sum / float64(n)
}

func fail(op, format string, args ...any) {
	panic(&tensor.Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}
