package figure

import (
	"fmt"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Confusion returns the confusion matrix of predicted classes: a row for each class with the share of its nodes that each
// class was predicted for, and the numbers of nodes as texts. A pair with a negative class, one that is not known, is left
// out.
func Confusion[T, P ~int | ~int8 | ~int16 | ~int32 | ~int64](classes []string, labels []T, predicted []P) (HeatMap, error) {
	h := HeatMap{Title: "confusion", Rows: classes, Columns: classes, RowLabel: "class", ColLabel: "predicted", Max: 1}
	if len(labels) != len(predicted) {
		return h, fmt.Errorf("figure: Confusion: there are %s and %s", phrase.Count(len(labels), "label"), phrase.Count(len(predicted), "prediction"))
	}
	n := len(classes)
	counts := make([][]int, n)
	for i := range counts {
		counts[i] = make([]int, n)
	}
	for i, y := range labels {
		p := predicted[i]
		if y < 0 || p < 0 {
			continue
		}
		if int64(y) >= int64(n) || int64(p) >= int64(n) {
			return h, fmt.Errorf("figure: Confusion: element %d has the class %d and the predicted class %d, and there are %s", i, y, p, phrase.Count(n, "name"))
		}
		counts[y][p]++
	}
	for _, row := range counts {
		sum := 0
		for _, c := range row {
			sum += c
		}
		shares, texts := make([]float64, n), make([]string, n)
		for j, c := range row {
			shares[j], texts[j] = float64(c)/float64(max(sum, 1)), fmt.Sprint(c)
		}
		h.Values, h.Texts = append(h.Values, shares), append(h.Texts, texts)
	}
	return h, nil
}
