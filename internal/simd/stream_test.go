package simd

import (
	"math"
	"math/big"
	"testing"
)

// Each kernel that goes over slices from front to back equals its formula.
func TestStreams(t *testing.T) {
	up := func(v float32) bool { return v > 0 || v != v }
	for _, k := range []struct {
		name string
		run  func(o, x, y []float32)
		want func(o, x, y float32) float32
	}{
		{"Add", func(o, x, _ []float32) { Add(o, x) }, func(o, x, _ float32) float32 { return o + x }},
		{"Axpy", func(o, x, _ []float32) { Axpy(o, x, 1.3) }, func(o, x, _ float32) float32 { return o + float32(1.3*x) }},
		{"Scale", func(o, x, _ []float32) { Scale(o, x, 1.3) }, func(_, x, _ float32) float32 { return 1.3 * x }},
		{"Plus", func(o, x, y []float32) { Plus(o, x, y, false) }, func(_, x, y float32) float32 { return x + y }},
		{"Plus/acc", func(o, x, y []float32) { Plus(o, x, y, true) }, func(o, x, y float32) float32 { return o + (x + y) }},
		{"Minus", func(o, x, y []float32) { Minus(o, x, y, false) }, func(_, x, y float32) float32 { return x - y }},
		{"Minus/acc", func(o, x, y []float32) { Minus(o, x, y, true) }, func(o, x, y float32) float32 { return o + (x - y) }},
		{"Times", func(o, x, y []float32) { Times(o, x, y, false) }, func(_, x, y float32) float32 { return x * y }},
		{"Times/acc", func(o, x, y []float32) { Times(o, x, y, true) }, func(o, x, y float32) float32 { return o + float32(x*y) }},
		{"ReLU", func(o, x, _ []float32) { ReLU(o, x) }, func(_, x, _ float32) float32 {
			if up(x) {
				return x
			}
			return 0
		}},
		{"ReLUGrad", func(o, x, y []float32) { ReLUGrad(o, y, x, false) }, func(_, x, y float32) float32 {
			if up(x) {
				return y
			}
			return 0
		}},
		{"ReLUGrad/acc", func(o, x, y []float32) { ReLUGrad(o, y, x, true) }, func(o, x, y float32) float32 {
			if up(x) {
				return o + y
			}
			return o + 0
		}},
		{"LeakyReLU", func(o, x, _ []float32) { LeakyReLU(o, x, 0.3) }, func(_, x, _ float32) float32 {
			if x > 0 {
				return x
			}
			return 0.3 * x
		}},
		{"LeakyReLUGrad", func(o, x, y []float32) { LeakyReLUGrad(o, y, x, 0.3, false) }, func(_, x, y float32) float32 {
			if x > 0 {
				return y
			}
			return 0.3 * y
		}},
		{"LeakyReLUGrad/acc", func(o, x, y []float32) { LeakyReLUGrad(o, y, x, 0.3, true) }, func(o, x, y float32) float32 {
			if x > 0 {
				return o + y
			}
			return o + float32(0.3*y)
		}},
		{"Exp", func(o, x, _ []float32) { Exp(o, x, 0.75) }, func(_, x, _ float32) float32 { return exp32(x - 0.75) }},
		{"Normal: Φ", func(o, x, y []float32) { Normal(o, y, x) }, func(_, x, _ float32) float32 { p, _ := normal32(x); return p }},
		{"Normal: φ", func(o, x, y []float32) { Normal(y, o, x) }, func(_, x, _ float32) float32 { _, p := normal32(x); return p }},
		{"SGD", func(o, x, _ []float32) { SGD(o, x, 0.1, 0.7, 0.01) }, func(o, x, _ float32) float32 {
			return o - float32(0.1*(float32(0.7*x)+float32(0.01*o)))
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			onPaths(t, func(t *testing.T) {
				r := testRand()
				for _, n := range sizes {
					for off := range 3 {
						o, x, y := withSpecials(r, n, off), withSpecials(r, n, 1), withSpecials(r, n, 3)
						want := make([]float32, n)
						for i := range want {
							want[i] = k.want(o[i], x[i], y[i])
						}
						got := guarded(o)
						k.run(got, x, y)
						sameBits(t, k.name, n, got, want)
					}
				}
			})
		})
	}
}

func TestOptimisers(t *testing.T) {
	s := AdamStep{Scale: 0.7, Decay: 0.01, B1: 0.9, C1: 0.1, B2: 0.999, C2: 0.001, Keep: 0.99, Size: 0.003, Root: 0.5, Eps: 1e-8}
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, n := range sizes {
			w, b, v, g := randoms(r, n, 1), randoms(r, n, 0), randoms(r, n, 2), randoms(r, n, 3)
			for i := range v {
				v[i] *= v[i]
			}
			wantW, wantM, wantV := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range n {
				d := float32(s.Scale*g[i]) + float32(s.Decay*w[i])
				wantM[i] = float32(s.B1*b[i]) + float32(s.C1*d)
				wantV[i] = float32(s.B2*v[i]) + float32(float32(s.C2*d)*d)
				wantW[i] = float32(s.Keep*w[i]) - float32(s.Size*wantM[i])/(float32(math.Sqrt(float64(wantV[i])))/s.Root+s.Eps)
			}
			gotW, gotM, gotV := guarded(w), guarded(b), guarded(v)
			Adam(gotW, gotM, gotV, g, &s)
			sameBits(t, "Adam: w", n, gotW, wantW)
			sameBits(t, "Adam: m", n, gotM, wantM)
			sameBits(t, "Adam: v", n, gotV, wantV)

			for _, nesterov := range []bool{false, true} {
				for i := range n {
					d := float32(0.7*g[i]) + float32(0.01*w[i])
					v := float32(0.9*b[i]) + d
					wantM[i] = v
					if nesterov {
						v = d + float32(0.9*v)
					}
					wantW[i] = w[i] - float32(0.1*v)
				}
				gotW, gotM := guarded(w), guarded(b)
				Momentum(gotW, gotM, g, 0.1, 0.7, 0.01, 0.9, nesterov)
				sameBits(t, "Momentum: w", n, gotW, wantW)
				sameBits(t, "Momentum: b", n, gotM, wantM)
			}
		}
	})
}

// exp32 is within 1 unit in the last place of e^x everywhere, and Exp has its bits on each path.
// The test tries every 1009th float32, which covers all exponents and both signs.
func TestExp(t *testing.T) {
	const stride = 1009
	var x []float32
	for b := uint64(0); b < 1<<32; b += stride {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	x = append(x, 88.72283, 88.72284, -87.33654, -103.27892, -103.97207, -103.97208, -104, 89)
	x = append(x, specials...)
	want := make([]float32, len(x))
	worst := 0.0
	for i, v := range x {
		want[i] = exp32(v)
		exact := math.Exp(float64(v)) // exact to 1 unit in the last place of float64
		switch {
		case v != v:
			if want[i] == want[i] {
				t.Fatalf("e^NaN is %g", want[i])
			}
			continue
		case float32(exact) == want[i]:
			continue
		case math.IsInf(float64(want[i]), 0) || math.IsInf(float64(float32(exact)), 0):
			t.Fatalf("e^%g is %g, want %g", v, want[i], exact)
		}
		ulp := float64(math.Nextafter32(float32(exact), math.MaxFloat32) - float32(exact))
		worst = max(worst, math.Abs(float64(want[i])-exact)/ulp)
	}
	t.Logf("the greatest error is %.3f units", worst)
	if worst > 1 {
		t.Errorf("the greatest error is %.3f units in the last place", worst)
	}
	onPaths(t, func(t *testing.T) {
		got := guarded(x)
		Exp(got, x, 0)
		sameBits(t, "Exp", len(x), got, want)
	})
}

// LogSoftmax and its gradient agree with sums of 100 bits.
func TestLogSoftmax(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, n := range sizes[1:] {
			for _, spread := range []float32{0, 1, 30} {
				x, g := randoms(r, n, 1), randoms(r, n, 2)
				for i := range x {
					x[i] *= spread
				}
				sum, gsum := new(big.Float).SetPrec(100), 0.0
				top := Greatest(x)
				for i, v := range x {
					sum.Add(sum, big.NewFloat(math.Exp(float64(v)-float64(top))))
					gsum += float64(g[i])
				}
				s, _ := sum.Float64()
				y := guarded(x)
				LogSoftmax(y, x)
				for i, v := range y {
					want := float64(x[i]) - float64(top) - math.Log(s)
					// x - top is rounded to 2^-24, which changes its exponential by up to
					// 2^-24·|x-top|; |x - top| is at most 30 where the exponential matters.
					if math.Abs(float64(v)-want) > 2e-7*math.Abs(float64(x[i]-top))+3e-6*math.Log(s) {
						t.Fatalf("%d columns: element %d is %g, want %g", n, i, v, want)
					}
				}
				for _, acc := range []bool{false, true} {
					d := guarded(g)
					LogSoftmaxGrad(d, g, y, acc)
					for i, v := range d {
						want := float64(g[i]) - math.Exp(float64(y[i]))*gsum
						if acc {
							want += float64(g[i])
						}
						if math.Abs(float64(v)-want) > 1e-6*(math.Abs(float64(g[i]))+math.Abs(gsum)) {
							t.Fatalf("%d columns: gradient %d is %g, want %g", n, i, v, want)
						}
					}
				}
			}
		}
		// A class that is almost certain has a small loss that is not 0.
		y := []float32{0, -20, -21, -30}
		LogSoftmax(y, y)
		if want := -math.Log1p(math.Exp(-20) + math.Exp(-21) + math.Exp(-30)); math.Abs(float64(y[0])/want-1) > 1e-6 {
			t.Errorf("the log of a probability near 1 is %g, want %g", y[0], want)
		}
		inf := float32(math.Inf(1))
		y = []float32{1000, 1000 - inf}
		LogSoftmax(y, y)
		if y[0] != 0 || y[1] != -inf {
			t.Errorf("LogSoftmax of 1000 and -Inf is %v", y)
		}
		for _, x := range [][]float32{{1, inf}, {1, inf - inf}, {-inf, -inf}, {inf - inf}} {
			LogSoftmax(x, x)
			for _, v := range x {
				if v == v {
					t.Errorf("LogSoftmax gives %v where no distribution exists", x)
					break
				}
			}
		}
	})
}

// The sums, and all values computed from them, have the same bits on each path.
func TestReductionsAgree(t *testing.T) {
	type result struct {
		sum    float64
		y, d   []float32
		top    float32
		sumExp float64
	}
	var want []result
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for i, n := range sizes[1:] {
			x, g := withSpecials(r, n, 1), randoms(r, n, 3)
			if i%2 == 0 {
				x = randoms(r, n, 1)
			}
			got := result{sum: Sum(x), y: guarded(x), d: guarded(g), top: Greatest(x)}
			got.sumExp = sumExp(x, 1)
			LogSoftmax(got.y, x)
			LogSoftmaxGrad(got.d, g, got.y, false)
			if len(want) == i {
				want = append(want, got)
				continue
			}
			w := want[i]
			sameBits(t, "LogSoftmax", n, got.y, w.y)
			sameBits(t, "LogSoftmaxGrad", n, got.d, w.d)
			if got.sum != w.sum && got.sum == got.sum || got.sumExp != w.sumExp && w.sumExp == w.sumExp || got.top != w.top {
				t.Fatalf("%d elements: sum %g, sum of exponentials %g, greatest %g; the Go path has %g, %g and %g", n, got.sum, got.sumExp, got.top, w.sum, w.sumExp, w.top)
			}
		}
	})
}

// Log1p is within 2e-7 of the exact value, for every 1009th float32, and every path gives the same bits.
func TestLog1p(t *testing.T) {
	const stride = 1009
	var x []float32
	for b := uint64(0); b < 1<<32; b += stride {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	x = append(x, 1.0/3, 0.33333334, 0.3333333, 1e-8, 6e-8, 1<<24)
	x = append(x, specials...)
	want := make([]float32, len(x))
	worst := 0.0
	for i, v := range x {
		want[i] = log1p32(v)
		if v != v {
			if want[i] == want[i] {
				t.Fatalf("log1p(NaN) is %g", want[i])
			}
			continue
		}
		exact := math.Log1p(min(max(float64(v), 0), math.MaxFloat32))
		worst = max(worst, math.Abs(float64(want[i])-exact)/max(1, exact))
	}
	t.Logf("the greatest error is %.2g", worst)
	if worst > 2e-7 {
		t.Errorf("the greatest error is %v", worst)
	}
	onPaths(t, func(t *testing.T) {
		for _, n := range fewSizes() {
			got := guarded(x[:n])
			Log1p(got, got)
			sameBits(t, "log1p", n, got, want[:n])
		}
		got := guarded(make([]float32, len(x)))
		Log1p(got, x)
		sameBits(t, "log1p", len(x), got, want)
	})
}
