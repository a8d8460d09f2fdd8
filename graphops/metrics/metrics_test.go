package metrics

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/expect"
)

func TestMicroF1(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		logits []float32
		labels []int8
		counts F1
		want   float64
	}{
		{"one of each", []float32{1, 1, -1, -1}, []int8{1, 0, 1, 0}, F1{1, 1, 1}, 0.5},
		{"all right", []float32{3, -2}, []int8{1, 0}, F1{1, 0, 0}, 1},
		{"all wrong", []float32{-3, 2}, []int8{1, 0}, F1{0, 1, 1}, 0},
		{"missing labels", []float32{9, -9, nan, 1}, []int8{-1, -1, -1, 1}, F1{1, 0, 0}, 1},
		{"a logit of 0 is a no", []float32{0}, []int8{1}, F1{0, 0, 1}, 0},
		{"NaN is a no", []float32{nan, nan}, []int8{1, 0}, F1{0, 0, 1}, 0},
		{"no yes anywhere", []float32{-1, -1}, []int8{0, 0}, F1{}, 0},
		{"nothing", nil, nil, F1{}, 0},
	} {
		var got F1
		got.AddRow(c.logits, c.labels)
		if got != c.counts || got.Micro() != c.want {
			t.Errorf("%s: %+v, F1 %v; want %+v, %v", c.name, got, got.Micro(), c.counts, c.want)
		}
	}
}

// Micro-F1 is the harmonic mean of precision and recall over all questions.
func TestMicroF1IsTheMeanOfPrecisionAndRecall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-2, 2), 1, 60).Draw(t, "logits")
		labels := rapid.SliceOfN(rapid.Int8Range(-1, 1), len(logits), len(logits)).Draw(t, "labels")
		var right, said, is float64
		for i, y := range labels {
			if y < 0 {
				continue
			}
			yes := logits[i] > 0
			if yes {
				said++
			}
			if y == 1 {
				is++
			}
			if yes && y == 1 {
				right++
			}
		}
		want := 0.0
		if right > 0 {
			precision, recall := right/said, right/is
			want = 2 * precision * recall / (precision + recall)
		}
		var c F1
		c.AddRow(logits, labels)
		if got := c.Micro(); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// Accuracy counts the labelled rows and those whose largest logit is the label's, the first of equal ones.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	correct, count := Accuracy([]float32{1, 0, 0, 1, 2, 2, 5, 6, 0, 9}, 2, []int32{0, 0, 0, 1, -1})
	if correct != 3 || count != 4 {
		t.Errorf("%d of %d are correct, want 3 of 4", correct, count)
	}
	expect.Error(t, nn.Try(func() { Accuracy(make([]float32, 5), 2, []int32{0, 1}) }), "[2,2]", "5 elements")
}

// The classes are those of scikit-learn's documentation of f1_score: labels 0 1 2 0 1 2 and answers 0 2 1 0 0 1; a fourth
// class does not occur.
func TestMacroF1(t *testing.T) {
	t.Parallel()
	classes := []F1{{TruePositives: 2, FalsePositives: 1}, {FalsePositives: 2, FalseNegatives: 2}, {FalsePositives: 1, FalseNegatives: 2}, {}}
	if got, want := MacroF1(classes), 0.8/3; math.Abs(got-want) > 1e-15 {
		t.Errorf("the mean is %v, want %v", got, want)
	}
	if got := MacroF1(make([]F1, 2)); !math.IsNaN(got) {
		t.Errorf("without labels it is %v", got)
	}
}
