package metrics

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/expect"
)

func TestROCAUC(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		scores []float32
		labels []int8
		want   float64
	}{
		{"right", []float32{1, 2, 3, 4}, []int8{0, 0, 1, 1}, 1},
		{"wrong", []float32{4, 3, 2, 1}, []int8{0, 0, 1, 1}, 0},
		{"documented by scikit-learn", []float32{0.1, 0.4, 0.35, 0.8}, []int8{0, 0, 1, 1}, 0.75},
		{"all tied", []float32{5, 5, 5}, []int8{0, 1, 1}, 0.5},
		{"a tie", []float32{1, 2, 2, 3}, []int8{0, 0, 1, 1}, 3.5 / 4},
		{"zeros of either sign tie", []float32{0, float32(math.Copysign(0, -1))}, []int8{0, 1}, 0.5},
		{"missing labels", []float32{9, 1, nan, 2}, []int8{-1, 0, -1, 1}, 1},
		{"no negatives", []float32{1}, []int8{1}, math.NaN()},
		{"nothing", nil, nil, math.NaN()},
		{"NaN", []float32{1, nan}, []int8{0, 1}, math.NaN()},
		{"infinite", []float32{float32(math.Inf(-1)), 0, float32(math.Inf(1))}, []int8{0, 0, 1}, 1},
	} {
		if got := ROCAUC(c.scores, c.labels); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	expect.Error(t, nn.Try(func() { ROCAUC(make([]float32, 2), make([]int8, 1)) }), "2 scores but 1 labels")
	expect.Error(t, nn.Try(func() { ROCAUC(make([]float32, 1), []int8{2}) }), "label 0 is 2")
}

func TestAveragePrecision(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		scores []float32
		labels []int8
		want   float64
	}{
		{"right", []float32{1, 2, 3, 4}, []int8{0, 0, 1, 1}, 1},
		{"wrong", []float32{4, 3, 2, 1}, []int8{0, 0, 1, 1}, (1.0/3 + 2.0/4) / 2},
		{"documented by scikit-learn", []float32{0.1, 0.4, 0.35, 0.8}, []int8{0, 0, 1, 1}, (1 + 2.0/3) / 2},
		{"all tied", []float32{5, 5, 5, 5}, []int8{0, 1, 0, 0}, 0.25},
		{"a tie of a positive and a negative", []float32{2, 2, 1}, []int8{0, 1, 1}, (1.0/2 + 2.0/3) / 2},
		{"missing labels", []float32{9, 1, nan, 2}, []int8{-1, 0, -1, 1}, 1},
		{"no negatives", []float32{1}, []int8{1}, math.NaN()},
		{"no positives", []float32{1}, []int8{0}, math.NaN()},
		{"NaN", []float32{1, nan}, []int8{0, 1}, math.NaN()},
	} {
		if got := AveragePrecision(c.scores, c.labels); math.Abs(got-c.want) > 1e-15 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	mean, column := MultiLabelAveragePrecision([]float32{1, 1, 2, 3, 3, 0}, 2, []int8{0, 1, 1, 1, 1, 1})
	if mean != 1 || column[0] != 1 || !math.IsNaN(column[1]) {
		t.Errorf("of two labels: %v, %v", mean, column)
	}
	expect.Error(t, nn.Try(func() { AveragePrecision(make([]float32, 1), []int8{2}) }), "label 0 is 2")
}

// ROCAUC equals the count over all pairs, for every order of the rows.
func TestROCAUCIsTheCountOfPairs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		level := rapid.IntRange(1, 30).Draw(t, "levels")
		scores, labels := make([]float32, n), make([]int8, n)
		for i := range n {
			scores[i] = float32(rapid.IntRange(0, level).Draw(t, "score")) / 7
			labels[i] = rapid.Int8Range(-1, 1).Draw(t, "label")
		}
		won, pairs := 0.0, 0.0
		for i := range n {
			for j := range n {
				if labels[i] == 1 && labels[j] == 0 {
					pairs++
					if scores[i] > scores[j] {
						won++
					} else if scores[i] == scores[j] {
						won += 0.5
					}
				}
			}
		}
		if got, want := ROCAUC(scores, labels), won/pairs; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// There are three labels for four rows: the second has only positives, the third no known values.
func TestMultiLabelMetrics(t *testing.T) {
	t.Parallel()
	scores := []float32{1, 1, 1, -2, 1, 1, 3, -1, 1, 4, 1, 1}
	labels := []int8{0, 1, -1, 0, 1, -1, 1, 1, -1, 0, -1, -1}
	mean, column := MultiLabelAUC(scores, 3, labels)
	if got := fmt.Sprint(mean, column); got != fmt.Sprint(2.0/3, []float64{2.0 / 3, math.NaN(), math.NaN()}) {
		t.Errorf("AUC %s", got)
	}
	mean, column = MultiLabelAccuracy(scores, 3, labels)
	if got := fmt.Sprintf("%.4f %.4f", mean, column); got != "0.5833 [0.5000 0.6667 NaN]" {
		t.Errorf("accuracy %s", got)
	}
	if mean, _ := MultiLabelAUC(nil, 2, nil); !math.IsNaN(mean) {
		t.Errorf("the AUC of no rows is %v", mean)
	}
	expect.Error(t, nn.Try(func() { MultiLabelAUC(scores, 5, labels) }), "12 values and 12 labels do not form rows of 5")
	expect.Near(t, "two classes", BinaryScores([]float32{1, 3, 2, -1}, 2), []float64{2, -3}, 0, 0)
	expect.Near(t, "one column", BinaryScores([]float32{1, 3}, 1), []float64{1, 3}, 0, 0)
	expect.Error(t, nn.Try(func() { BinaryScores(nil, 3) }), "3 columns")
}
