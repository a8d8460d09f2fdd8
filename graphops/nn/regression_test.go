package nn

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

var missing32 = float32(math.NaN())

// The losses of known errors, worked out by hand from their formulas; missing targets and weights of 0 count nothing.
func TestRegressionLosses(t *testing.T) {
	t.Parallel()
	y := []float32{0, 0, missing32, 0, 5, 0}
	x := []float32{0.5, -2, 9, 0, 5, 3} // the errors are 0.5, -2, none, 0, 0, 3
	w := []float32{1, 1, 1, 1, 1, 0}
	for _, c := range []struct {
		o                Regression
		all, weighted    float64
		slopes           []float64
		describesFailure string
	}{
		{Regression{}, 0.25 + 4 + 9, 4.25, []float64{1, -4, 0, 0, 0, 6}, "squared"},
		{Regression{Kind: "absolute"}, 0.5 + 2 + 3, 2.5, []float64{1, -1, 0, 0, 0, 1}, "absolute"},
		{Regression{Kind: "huber"}, 0.125 + 1.5 + 2.5, 1.625, []float64{0.5, -1, 0, 0, 0, 1}, "huber of 1"},
		{Regression{Kind: "huber", Delta: 2}, 0.125 + 2 + 4, 2.125, []float64{0.5, -2, 0, 0, 0, 2}, "huber of 2"},
		{Regression{Kind: "quantile"}, (0.5 + 2 + 3) / 2, 1.25, []float64{0.5, -0.5, 0, 0.5, 0.5, 0.5}, "the median"},
		{Regression{Kind: "quantile", Quantiles: []float64{0.9}}, 0.05 + 1.8 + 0.3, 1.85, []float64{0.1, -0.9, 0, 0.1, 0.1, 0.1}, "a quantile"},
	} {
		f := NewFwd(Config{Grad: true})
		in := f.Leaf(6, 1, x, nil)
		l := c.o.Loss(in, y, nil)
		if got := float64(l.Sum.Data()[0]); math.Abs(got-c.all) > 1e-6 || l.Weight != 5 || l.Count != 5 || l.Correct() != 0 {
			t.Errorf("%s: the sum is %v of %v, want %v of 5", c.describesFailure, got, l.Weight, c.all)
		}
		l.Backward()
		expect.Near(t, c.describesFailure, in.Grad(), c.slopes, 1e-6, 1e-6)
		if l := c.o.Loss(NewFwd(Config{}).Leaf(6, 1, x, nil), y, w); math.Abs(float64(l.Sum.Data()[0])-c.weighted) > 1e-6 || l.Weight != 4 {
			t.Errorf("%s: with weights the sum is %v of %v, want %v of 4", c.describesFailure, l.Sum.Data()[0], l.Weight, c.weighted)
		}
	}
}

// Several targets and quantiles have columns of their own; the gradient is that of central differences, on any number of threads.
func TestRegressionGradients(t *testing.T) {
	t.Parallel()
	const rows, of = 900, 2
	y, w := expect.Normal(rows*of, 4), make([]float32, rows)
	for i := range y {
		if i%7 == 3 {
			y[i] = missing32
		}
		w[i/of] = float32(i % 5)
	}
	for name, o := range map[string]Regression{
		"squared": {}, "huber": {Kind: "huber", Delta: 0.7}, "quantiles": {Kind: "quantile", Quantiles: []float64{0.1, 0.5, 0.9}},
	} {
		cols := o.Columns(of)
		gradcheck.Check(t, func(_ *Fwd, x []*Tensor) *Tensor { return o.Loss(x[0], y[:5*of], w[:5]).Sum }, gradcheck.Random(5, cols, 2))
		x, sums := expect.Normal(rows*cols, 3), map[float32]bool{}
		for _, threads := range []int{1, 2, 5} {
			sums[o.Loss(NewFwd(Config{Threads: threads}).Leaf(rows, cols, x, nil), y, w).Sum.Data()[0]] = true
		}
		if len(sums) != 1 {
			t.Errorf("%s: the sums depend on threads: %v", name, sums)
		}
	}
}

func TestRegressionErrors(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Regression{
		"squared, absolute, huber or quantile": {Kind: "cubic"},
		"only the loss huber":                  {Delta: 1},
		"above 0":                              {Kind: "huber", Delta: -1},
		"only the loss quantile":               {Quantiles: []float64{0.5}},
		"each above the one before":            {Kind: "quantile", Quantiles: []float64{0.5, 0.5}},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	x := func() *Tensor { return NewFwd(Config{}).Leaf(2, 1, []float32{1, 2}, nil) }
	for want, call := range map[string]func(){
		"targets are finite":          func() { Regression{}.Loss(x(), []float32{1, float32(math.Inf(1))}, nil) },
		"give 1 for each row":         func() { Regression{}.Loss(x(), []float32{1}, nil) },
		"one per row":                 func() { Regression{}.Loss(x(), []float32{1, 2}, []float32{1}) },
		"must be a number, 0 or more": func() { Regression{}.Loss(x(), []float32{1, 2}, []float32{1, -1}) },
		"of 2 quantiles":              func() { Regression{Kind: "quantile", Quantiles: []float64{0.1, 0.9}}.Loss(x(), []float32{1, 2}, nil) },
	} {
		expect.Error(t, Try(call), want)
	}
}
