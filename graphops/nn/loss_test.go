package nn

import (
	"errors"
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

func refCrossEntropy(x ref.Matrix, labels []int32) float64 {
	return refNLL(ref.LogSoftmax(x), labels)
}

func refNLL(x ref.Matrix, labels []int32) float64 {
	s := 0.0
	for r, y := range labels {
		if y >= 0 {
			s -= x.At(r, int(y))
		}
	}
	return s
}

func TestLossGradients(t *testing.T) {
	t.Parallel()
	const big = 1e4
	many := make([]int32, 1500) // several chunks
	for i := range many {
		many[i] = int32(i%5) - 1
	}
	for _, tc := range []struct {
		name           string
		cols           int
		x              []float32
		labels         []int32
		correct, count int64
	}{
		{"no rows", 3, nil, nil, 0, 0},
		{"one class", 1, []float32{5, -3}, []int32{0, 0}, 2, 2},
		{"ties", 3, []float32{1, 1, 1, 0, 2, 2}, []int32{0, 2}, 1, 2},
		{"no label", 2, []float32{1, 2, 3, 4}, []int32{-1, -1}, 0, 0},
		{"one without label", 2, []float32{1, 2, 3, 4, 9, 1}, []int32{1, -1, 1}, 1, 2},
		{"large logits", 3, []float32{big, -big, 0, big, -big, 0, -big, -big, -big}, []int32{0, 1, 2}, 1, 3},
		{"many", 4, expect.Normal(4*len(many), 8), many, -1, 1200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n := len(tc.labels)
			f := NewFwd(Config{Grad: true})
			x := f.Leaf(n, tc.cols, tc.x, nil)
			l := CrossEntropy(x, tc.labels)
			rx := ref.From(n, tc.cols, tc.x)
			expect.Near(t, "cross entropy", l.Sum.Data(), []float64{refCrossEntropy(rx, tc.labels)}, 1e-6, 1e-6)
			if tc.correct >= 0 && l.Correct() != tc.correct || l.Count != tc.count || l.Weight != float64(tc.count) {
				t.Errorf("correct %d of %d with weight %v, want %d of %d", l.Correct(), l.Count, l.Weight, tc.correct, tc.count)
			}
			correct, count := accuracy(tc.x, tc.cols, tc.labels)
			if correct != l.Correct() || count != l.Count {
				t.Errorf("the largest logits give %d of %d, the loss %d of %d", correct, count, l.Correct(), l.Count)
			}
			l.Backward()
			if n < 100 { // differences of a large sum lose digits
				central(t, "gradient", rx, x.Grad(), func() float64 { return refCrossEntropy(rx, tc.labels) })
			}
			for r, y := range tc.labels { // the gradient of each row adds up to 0
				s := 0.0
				for _, d := range x.Grad()[r*tc.cols : (r+1)*tc.cols] {
					s += float64(d)
					if y < 0 && d != 0 {
						t.Fatalf("row %d has no label but a gradient", r)
					}
				}
				if math.Abs(s) > 1e-6 {
					t.Fatalf("the gradient of row %d adds up to %g", r, s)
				}
			}

			// NLL of log-probabilities is the same loss as CrossEntropy of logits.
			f.Reset(Config{Grad: true})
			z := f.Leaf(n, tc.cols, tc.x, nil)
			nll := NLL(f.LogSoftmax(z), tc.labels)
			expect.Near(t, "NLL", nll.Sum.Data(), []float64{refCrossEntropy(rx, tc.labels)}, 1e-5, 1e-5)
			if nll.Correct() != l.Correct() || nll.Count != l.Count || nll.Weight != l.Weight {
				t.Errorf("NLL counts %d of %d", nll.Correct(), nll.Count)
			}
			nll.Backward()
			if n < 100 {
				central(t, "NLL's gradient", rx, z.Grad(), func() float64 { return refCrossEntropy(rx, tc.labels) })
			}
		})
	}
}

// A confident prediction has a loss and a gradient that computing 1 - p in float32 would lose.
func TestCrossEntropySmallLoss(t *testing.T) {
	t.Parallel()
	f := NewFwd(Config{Grad: true})
	x := f.Leaf(1, 2, []float32{10020, 10000}, nil)
	l := CrossEntropy(x, []int32{0})
	l.Backward()
	want := math.Log1p(math.Exp(-20))
	// lse is about 1e4 in float64, so its error is about 1e4·2^-53.
	expect.Near(t, "loss", l.Sum.Data(), []float64{want}, 4e-12, 0)
	p := 1 / (1 + math.Exp(20))
	expect.Near(t, "gradient", x.Grad(), []float64{-p, p}, 4e-12, 0)

	// Here p is 1 even in float64, but the gradient is not 0.
	f.Reset(Config{Grad: true})
	x = f.Leaf(1, 2, []float32{40, 0}, nil)
	CrossEntropy(x, []int32{0}).Backward()
	p = math.Exp(-40)
	expect.Near(t, "gradient", x.Grad(), []float64{-p, p}, 0, 1e-6)
}

func TestLossNaN(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, row := range [][]float32{{nan, 1}, {1, nan}, {inf, inf}, {-inf, -inf}} {
		f := NewFwd(Config{})
		if l := CrossEntropy(f.Input(1, 2, row, nil), []int32{0}); !math.IsNaN(l.Mean()) {
			t.Errorf("the loss of %v is %v, want NaN", row, l.Mean())
		} else if want := map[bool]int64{true: 1}[Argmax(row) == 0]; l.Correct() != want { // as on the GPU
			t.Errorf("%d rows of %v are correct, want %d", l.Correct(), row, want)
		}
	}
	f := NewFwd(Config{})
	if l := CrossEntropy(f.Input(1, 2, []float32{-inf, 0}, nil), []int32{0}); !math.IsInf(l.Mean(), 1) {
		t.Errorf("the loss of an impossible label is %v, want +Inf", l.Mean())
	}
}

func TestLossThreads(t *testing.T) {
	t.Parallel()
	const n, cols = 3000, 7
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i%8) - 1
	}
	x := expect.Normal(n*cols, 1)
	var sum, grad []float32
	for threads := 1; threads <= 3; threads++ {
		f := NewFwd(Config{Grad: true, Threads: threads})
		h := f.Leaf(n, cols, x, nil)
		l := CrossEntropy(h, labels)
		l.Backward()
		if threads == 1 {
			sum, grad = append(sum, l.Sum.Data()...), append(grad, h.Grad()...)
			continue
		}
		expect.SameBits(t, "loss", sum, l.Sum.Data())
		expect.SameBits(t, "gradient", grad, h.Grad())
	}
}

func TestLossErrors(t *testing.T) {
	t.Parallel()
	f := NewFwd(Config{})
	x := f.Input(2, 3, make([]float32, 6), nil)
	for _, loss := range []func(*Tensor, []int32) *Loss{CrossEntropy, NLL} {
		expect.Error(t, Try(func() { loss(x, []int32{0}) }), "[2,3]", "1 labels")
		expect.Error(t, Try(func() { loss(x, []int32{0, 3}) }), "label 3 of row 1", "0 to 2")
		expect.Error(t, Try(func() { loss(x, []int32{-2, 0}) }), "label -2 of row 0")
		expect.Error(t, Try(func() { loss(nil, nil) }), "nil tensor")
		expect.Error(t, Try(func() { loss(x, []int32{0, 0}).Backward() }), "tensor: Backward: the pass records no gradients")
	}
	expect.Error(t, Try(func() { (&Loss{}).Backward() }), "no Sum")
	f.Reset(Config{Grad: true})
	l := CrossEntropy(f.Leaf(1, 2, []float32{1, 2}, nil), []int32{1})
	l.Backward()
	err := Try(l.Backward)
	var te *tensor.Error
	if !errors.As(err, &te) {
		t.Errorf("a second Backward gives %v", err)
	}
	expect.Error(t, err, "has run in this pass")
}

// A user's own loss is made of operations and has its own weight.
func TestOwnLoss(t *testing.T) {
	t.Parallel()
	f := NewFwd(Config{Grad: true})
	x := f.Leaf(2, 2, []float32{1, 2, 3, 4}, nil)
	l := &Loss{Sum: f.SumAll(f.Mul(x, x)), Weight: 4}
	l.Backward()
	if l.Mean() != 7.5 {
		t.Errorf("the mean is %v, want 30/4", l.Mean())
	}
	expect.Near(t, "gradient", x.Grad(), []float64{2, 4, 6, 8}, 0, 0)
}

func TestArgmax(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		row  []float32
		want int
	}{{nil, 0}, {[]float32{-1}, 0}, {[]float32{1, 3, 3, 2}, 1}, {[]float32{-3, -2, -1}, 2}} {
		if got := Argmax(tc.row); got != tc.want {
			t.Errorf("Argmax(%v) = %d, want %d", tc.row, got, tc.want)
		}
	}
}
