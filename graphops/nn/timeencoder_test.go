package nn

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// Spans of years keep their cosines: the angle is not rounded to float32.
func TestTimeEncoderOfLongSpans(t *testing.T) {
	t.Parallel()
	const cols = 9
	spans := []float32{0, 1, 59, 3600, 86399, 1 << 24, 1.5e8, 1e9, -1e9}
	for _, o := range []TimeOptions{{}, {Geometric: true}, {Fixed: true}} {
		e := NewTimeEncoderWith(cols, o)
		p := mustCollect(t, e)
		p.Init(3)
		f := NewFwd(Config{})
		y := e.Forward(f, f.Input(len(spans), 1, spans, nil)).Data()
		want := make([]float64, len(y))
		for i, dt := range spans {
			for j := range cols {
				want[i*cols+j] = math.Cos(float64(dt)*float64(e.Weight.W[j]) + float64(e.Bias.W[j]))
			}
		}
		expect.Near(t, "cosines", y, want, 1e-6, 0)
		if trained := len(p.Flat()); trained != map[bool]int{false: 2 * cols, true: 0}[o.Fixed] {
			t.Errorf("with %+v, %d numbers are trained", o, trained)
		}
		if o.Geometric || o.Fixed { // 9 columns: a = 3
			expect.Near(t, "frequencies", e.Weight.W, []float64{1, 0.693361, 0.480750, 1. / 3, 0.231120, 0.160250, 1. / 9, 0.077040, 0.053417}, 1e-6, 0)
			expect.Near(t, "phases", e.Bias.W, make([]float64, cols), 0, 0)
		}
	}
}

// The gradients of frequencies, phases and spans are right, and the number of threads changes none of their bits.
func TestTimeEncoderGradients(t *testing.T) {
	t.Parallel()
	e := NewTimeEncoder(5)
	gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor { return e.Forward(f, x[0]) }, inputsOf(t, e, 7, 1)...)
	const n, cols = 3000, 20
	wide := NewTimeEncoder(cols)
	p := mustCollect(t, wide)
	p.Init(1)
	spans, scale := expect.Normal(n, 1), expect.Normal(n*cols, 2)
	var first []float32
	for _, threads := range []int{1, 2, 3, 7} {
		f := NewFwd(Config{Grad: true, Threads: threads})
		x := f.Leaf(n, 1, spans, &Space{})
		p.ZeroGrad()
		if err := f.SumAll(f.Mul(wide.Forward(f, x), f.Input(n, cols, scale, nil))).Backward(); err != nil {
			t.Fatal(err)
		}
		all := append(append([]float32(nil), p.Grad()...), x.Grad()...)
		if first == nil {
			first = all
		}
		expect.SameBits(t, "gradients", first, all)
	}
}
