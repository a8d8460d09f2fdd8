package nn

import (
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// The losses per row add up to the losses that training uses.
func TestRowLosses(t *testing.T) {
	t.Parallel()
	const n, cols = 37, 5
	x := expect.Normal(n*cols, 3)
	f := NewFwd(Config{})
	one, several := make([]int32, n), make([]int8, n*cols)
	for i := range several {
		several[i] = int8(i*7%3) - 1
	}
	var ce, bce float64
	var count int64
	for r := range n {
		one[r] = int32(r % cols)
		row := x[r*cols : (r+1)*cols]
		ce += RowCrossEntropy(row, r%cols)
		sum, k := RowBCE(row, several[r*cols:(r+1)*cols])
		bce, count = bce+sum, count+k
	}
	logits := f.Input(n, cols, x, nil)
	expect.Near(t, "cross-entropy", CrossEntropy(logits, one).Sum.Data(), []float64{ce}, 0, 1e-6)
	l := BCEWithLogits(logits, several)
	expect.Near(t, "BCE", l.Sum.Data(), []float64{bce}, 0, 1e-6)
	if l.Count != count {
		t.Errorf("%d labels, want %d", count, l.Count)
	}
}

// Missing labels have no gradient, extreme logits cause no infinite loss, and the number of threads
// changes no bit.
func TestBCE(t *testing.T) {
	t.Parallel()
	f := NewFwd(Config{Grad: true})
	x := f.Leaf(2, 2, []float32{500, -500, 500, 3}, nil)
	l := BCEWithLogits(x, []int8{0, 0, 1, -1})
	expect.Near(t, "loss", l.Sum.Data(), []float64{500}, 0, 1e-6)
	if l.Correct() != 2 || l.Count != 3 || l.Weight != 3 {
		t.Errorf("%d of %d right, weight %v", l.Correct(), l.Count, l.Weight)
	}
	l.Backward()
	expect.Near(t, "gradient", x.Grad(), []float64{1, 0, 0, 0}, 1e-6, 0)
	expect.Error(t, Try(func() { BCEWithLogits(f.Input(2, 2, make([]float32, 4), nil), make([]int8, 3)) }), "the logits are [2,2] but there are 3 labels")
	expect.Error(t, Try(func() { BCEWithLogits(f.Input(1, 2, make([]float32, 2), nil), []int8{0, 7}) }), "label 1 of row 0 is 7")
	expect.Error(t, Try(func() { BCEWithLogits(nil, nil) }), "nil tensor")

	const n, cols = 3000, 5
	labels := make([]int8, n*cols)
	for i := range labels {
		labels[i] = int8(i%3) - 1
	}
	var bits []float32
	for threads := 1; threads <= 3; threads++ {
		f := NewFwd(Config{Grad: true, Threads: threads})
		x := f.Leaf(n, cols, expect.Normal(n*cols, 1), nil)
		l := BCEWithLogits(x, labels)
		l.Backward()
		got := append(append([]float32(nil), l.Sum.Data()...), x.Grad()...)
		if bits == nil {
			bits = got
		}
		expect.SameBits(t, "threads", bits, got)
	}
}
