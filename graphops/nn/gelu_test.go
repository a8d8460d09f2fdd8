package nn

import (
	"math"
	"testing"
)

// GELU and its gradient are those of the formula in float64, also far out, where Φ is 0 or 1.
func TestGELUIsExact(t *testing.T) {
	var in []float32
	for i := -2000; i <= 2000; i++ {
		in = append(in, float32(i)/130)
	}
	in = append(in, 0, float32(math.Copysign(0, -1)), 100, -100, 1e15, -1e15)
	f := NewFwd(Config{Grad: true})
	leaf := f.Leaf(len(in), 1, in, nil)
	y := GELU(f, leaf)
	if err := f.SumAll(y).Backward(); err != nil {
		t.Fatal(err)
	}
	for i, v := range in {
		x := float64(v)
		cdf := math.Erfc(-x/math.Sqrt2) / 2
		if want, got := x*cdf, float64(y.Data()[i]); math.Abs(got-want) > 5e-7*math.Abs(want)+1e-7 {
			t.Errorf("gelu(%v) = %v, want %v", v, got, want)
		}
		if want, got := cdf+x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi), float64(leaf.Grad()[i]); math.Abs(got-want) > 1e-6 {
			t.Errorf("the slope of gelu at %v = %v, want %v", v, got, want)
		}
	}
}
