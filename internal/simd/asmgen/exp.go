package main

import "math"

// exp writes dst = e^x. It destroys x and uses the temporaries t0, t1 and t2. simd.exp32 computes
// the same in Go and explains the method.
func exp(x, dst string) func(a *asm, r map[string]string) {
	return func(a *asm, r map[string]string) {
		x, n, p, t := r[x], r["t1"], r["t2"], r["t0"]
		// If an operand is NaN, these instructions return the first operand as written.
		a.op("VMOVUPS %s, %s", a.float("expLow", -104), t)
		a.op("VMAXPS %s, %s, %s", x, t, x)
		a.op("VMOVUPS %s, %s", a.float("expHigh", 89), t)
		a.op("VMINPS %s, %s, %s", x, t, x)
		a.op("VMULPS %s, %s, %s", a.float("log2e", 1.44269504), x, n)
		if a.name == avx512.name {
			a.op("VRNDSCALEPS $8, %s, %s", n, n)
		} else {
			a.op("VROUNDPS $8, %s, %s", n, n)
		}
		a.op("VMULPS %s, %s, %s", a.float("ln2a", 0.693359375), n, t)
		a.op("VSUBPS %s, %s, %s", t, x, x)
		a.op("VMULPS %s, %s, %s", a.float("ln2b", -2.12194440e-4), n, t)
		a.op("VSUBPS %s, %s, %s", t, x, x)
		a.op("VMULPS %s, %s, %s", a.float("exp6", 0.0013814596), x, p)
		a.op("VADDPS %s, %s, %s", a.float("exp5", 0.008368717), p, p)
		for _, c := range []struct {
			name string
			v    float32
		}{{"exp4", 0.041668389}, {"exp3", 0.16666521}, {"exp2", 0.49999994}} {
			a.op("VMULPS %s, %s, %s", x, p, p)
			a.op("VADDPS %s, %s, %s", a.float(c.name, c.v), p, p)
		}
		a.op("VMULPS %s, %s, %s", x, x, t)
		a.op("VMULPS %s, %s, %s", t, p, p)
		a.op("VADDPS %s, %s, %s", x, p, p)
		a.op("VADDPS %s, %s, %s", a.float("one", 1), p, p)
		a.op("VCVTPS2DQ %s, %s", n, n)
		a.op("VPSRAD $1, %s, %s", n, t)
		a.op("VPSUBD %s, %s, %s", t, n, n)
		for _, half := range []string{t, n} {
			a.op("VPADDD %s, %s, %s", a.words("bias", 127), half, half)
			a.op("VPSLLD $23, %s, %s", half, half)
			a.op("VMULPS %s, %s, %s", half, p, p)
		}
		a.op("VMOVAPS %s, %s", p, r[dst])
	}
}

// normal writes cdf and density; simd.normal computes the same in Go and explains the method.
func normal(a *asm, r map[string]string) {
	x, t, p, one := r["x"], r["t0"], r["t2"], r["t1"]
	binary("VMULPS", "x", "x", "density")(a, r)
	a.op("VMULPS %s, %s, %s", a.float("minusHalf", -0.5), r["density"], r["density"])
	exp("density", "density")(a, r)
	a.op("VSUBPS %s, %s, %s", x, r["zero"], t)
	a.op("VMAXPS %s, %s, %s", x, t, t)
	a.op("VMULPS %s, %s, %s", a.float("normalStep", 0.3), t, t)
	a.op("VMOVUPS %s, %s", a.float("one", 1), one)
	a.op("VADDPS %s, %s, %s", one, t, t)
	a.op("VDIVPS %s, %s, %s", t, one, t)
	a.op("VMULPS %s, %s, %s", a.float("normal8", 0.035423573), t, p)
	for i, c := range []float32{-0.15615776, 0.2045556, -0.05203292, 0.127691194, 0.100176126, 0.12071211, 0.119632006} {
		a.op("VADDPS %s, %s, %s", a.float("normal"+string(rune('7'-i)), c), p, p)
		a.op("VMULPS %s, %s, %s", t, p, p)
	}
	a.op("VMULPS %s, %s, %s", r["density"], p, r["cdf"])
	a.op("VSUBPS %s, %s, %s", r["cdf"], one, one)
	whereAbove0("x", "t1", "cdf")(a, r)
	a.op("VMULPS %s, %s, %s", a.float("normalTop", 0.39894228), r["density"], r["density"])
}

// log1p writes o = log(1 + max(0, x)); simd.log1p32 computes the same in Go and explains the method.
func log1p(a *asm, r map[string]string) {
	x, o, nan, n, t := r["x"], r["o"], r["t0"], r["t1"], r["t2"]
	// If an operand is NaN, these instructions return the first operand as written.
	a.op("VMAXPS %s, %s, %s", x, r["zero"], o)
	a.op("VMOVUPS %s, %s", a.float("greatest", math.MaxFloat32), t)
	a.op("VMINPS %s, %s, %s", o, t, x)
	a.op("VSUBPS %s, %s, %s", x, x, nan)
	a.op("VADDPS %s, %s, %s", a.float("one", 1), x, x)
	a.op("VPSUBD %s, %s, %s", a.words("twoThirds", 0x3f2aaaab), x, n)
	a.op("VPSRAD $23, %s, %s", n, n)
	a.op("VPSLLD $23, %s, %s", n, t)
	a.op("VPSUBD %s, %s, %s", t, x, x)
	a.op("VCVTDQ2PS %s, %s", n, n)
	a.op("VADDPS %s, %s, %s", a.float("one", 1), x, t)
	a.op("VSUBPS %s, %s, %s", a.float("one", 1), x, x)
	a.op("VDIVPS %s, %s, %s", t, x, x)
	a.op("VMULPS %s, %s, %s", x, x, t)
	a.op("VMULPS %s, %s, %s", a.float("log6", 0.30359063), t, o)
	for _, c := range []struct {
		name string
		v    float32
	}{{"log4", 0.3995791}, {"log2", 0.6666695}, {"two", 2}} {
		a.op("VADDPS %s, %s, %s", a.float(c.name, c.v), o, o)
		if c.name != "two" {
			a.op("VMULPS %s, %s, %s", t, o, o)
		}
	}
	a.op("VMULPS %s, %s, %s", x, o, o)
	a.op("VMULPS %s, %s, %s", a.float("ln2", 0.6931472), n, n)
	a.op("VADDPS %s, %s, %s", n, o, o)
	a.op("VADDPS %s, %s, %s", nan, o, o)
}
