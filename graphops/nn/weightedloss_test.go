package nn

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// TestCrossEntropyOptionsArePyTorch compares values, gradients and means with PyTorch's (testdata/crossentropy.py).
func TestCrossEntropyOptionsArePyTorch(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/crossentropy.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Labels []int32
		Cases  []struct {
			Weights   []float32
			Smoothing float64
			Loss      float64
			Grad      []float64
		}
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	if len(py.Cases) != 9 {
		t.Fatalf("crossentropy.json has %d cases", len(py.Cases))
	}
	for _, c := range py.Cases {
		o := CrossEntropyOptions{Weights: c.Weights, Smoothing: c.Smoothing}
		f := NewFwd(Config{Grad: true})
		x := f.Leaf(7, 4, pyValues(28, 5), nil)
		l := o.Loss(x, py.Labels)
		if math.Abs(l.Mean()-c.Loss) > 1e-6*math.Abs(c.Loss) {
			t.Errorf("%+v: the loss is %v, PyTorch's %v", o, l.Mean(), c.Loss)
		}
		if correct, count := accuracy(pyValues(28, 5), 4, py.Labels); l.Correct() != correct || l.Count != count {
			t.Errorf("%+v: %d of %d rows are right, want %d of %d", o, l.Correct(), l.Count, correct, count)
		}
		l.Backward()
		grad := slices.Clone(x.Grad())
		for i := range grad {
			grad[i] /= float32(l.Weight)
		}
		expect.Near(t, "gradient", grad, c.Grad, 1e-6, 1e-6)
	}
}

// TestCrossEntropyOptionsChunks tests that many rows in several chunks add up, on any number of threads.
func TestCrossEntropyOptionsChunks(t *testing.T) {
	t.Parallel()
	const rows, cols = 3000, 5
	x, labels := expect.Normal(rows*cols, 3), make([]int32, rows)
	for r := range labels {
		labels[r] = int32(r%6) - 1
	}
	o := CrossEntropyOptions{Weights: []float32{1, 2, 0.5, 0, 3}, Smoothing: 0.2}
	var want float64
	for r, y := range labels {
		if y < 0 {
			continue
		}
		row := x[r*cols : (r+1)*cols]
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		lse := math.Log(sum)
		for c, v := range row {
			target := 0.2 / cols
			if c == int(y) {
				want += 0.8 * float64(o.Weights[c]) * (lse - float64(v))
			}
			want += target * float64(o.Weights[c]) * (lse - float64(v))
		}
	}
	var first []float32
	for _, threads := range []int{1, 2, 7} {
		f := NewFwd(Config{Grad: true, Threads: threads})
		leaf := f.Leaf(rows, cols, x, nil)
		l := o.Loss(leaf, labels)
		expect.Near(t, "sum", l.Sum.Data(), []float64{want}, 1e-6, 1e-6)
		if l.Weight != 500*(1+2+0.5+0+3) {
			t.Errorf("the weight is %v", l.Weight)
		}
		l.Backward()
		if first == nil {
			first = slices.Clone(leaf.Grad())
		} else if !slices.Equal(first, leaf.Grad()) {
			t.Errorf("the gradient with %d threads differs", threads)
		}
	}
}

// TestCrossEntropyOptionsConfident tests that the gradient of a confident prediction is not lost to rounding.
func TestCrossEntropyOptionsConfident(t *testing.T) {
	t.Parallel()
	f := NewFwd(Config{Grad: true})
	x := f.Leaf(1, 2, []float32{40, 0}, nil)
	CrossEntropyOptions{Weights: []float32{2, 1}}.Loss(x, []int32{0}).Backward()
	want := 2 * math.Exp(-40)
	expect.Near(t, "gradient", x.Grad(), []float64{-want, want}, 0, 1e-5)
}

func TestBalancedWeights(t *testing.T) {
	t.Parallel()
	got := BalancedWeights([]int32{0, 0, 0, 1, -1, 3, 3}, 4)
	expect.Near(t, "weights", got, []float64{6. / 9, 2, 0, 1}, 0, 1e-6)
	if w := BalancedWeights(nil, 2); !slices.Equal(w, []float32{0, 0}) {
		t.Errorf("no labels give %v", w)
	}
}

// TestCrossEntropyOptionsMisuse tests that options without meaning are refused with a sentence.
func TestCrossEntropyOptionsMisuse(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for name, o := range map[string]CrossEntropyOptions{
		"too few": {Weights: []float32{1}}, "negative": {Weights: []float32{1, -1}}, "NaN": {Weights: []float32{1, nan}}, "all 0": {Weights: []float32{0, 0}},
		"smoothing 1": {Smoothing: 1}, "negative smoothing": {Smoothing: -0.1}, "smoothing NaN": {Smoothing: math.NaN()},
	} {
		if o.Check(2) == nil {
			t.Errorf("%s: Check accepts %+v", name, o)
		}
		err := Try(func() {
			f := NewFwd(Config{Grad: true})
			o.Loss(f.Leaf(1, 2, []float32{1, 2}, nil), []int32{1})
		})
		if err == nil {
			t.Errorf("%s: Loss accepts %+v", name, o)
		}
	}
}
