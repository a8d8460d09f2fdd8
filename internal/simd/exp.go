package simd

import "math"

// Exp computes o = e^(x-s), within 1 unit in the last place of the true value for the rounded
// difference. It gives 0 from -103.98 down, +Inf above 88.72, and NaN for NaN.
func Exp(o, x []float32, s float32) {
	checkLen("Exp", len(x), len(o))
	if len(o) == 0 || expMinus(&o[0], &x[0], len(o), s) {
		return
	}
	for i, v := range x {
		o[i] = exp32(v - s)
	}
}

// exp32 computes e^x as 2^n·e^r, where n is the integer nearest to x/ln 2 and r is the remainder,
// at most ln 2/2 in size. It approximates e^r by 1 + r + r²·p(r), where p has degree 4 and the
// smallest possible maximum of the relative error, 3.1e-9.
//
// ln 2 is stored in two parts; the first has few enough bits that its product with n is exact. 2^n
// is multiplied in two factors, because n ranges from -150 to 128, beyond the exponents of one
// float32.
func exp32(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -104), 89)
	n := float32(math.RoundToEven(float64(x * 1.44269504)))
	r := x - float32(n*0.693359375)
	r -= float32(n * -2.12194440e-4)
	p := float32(0.0013814596*r) + 0.008368717
	p = float32(p*r) + 0.041668389
	p = float32(p*r) + 0.16666521
	p = float32(p*r) + 0.49999994
	p = float32(p*float32(r*r)) + r + 1
	half := int32(n) >> 1
	return p * power2(half) * power2(int32(n)-half)
}

// Normal computes the distribution function Φ and the density φ of the normal distribution of each x. Φ is within
// 4e-7 of its value, relative to it. For NaN both are NaN. cdf and density must not be x.
func Normal(cdf, density, x []float32) {
	checkLen("Normal", len(cdf), len(x))
	checkLen("Normal", len(density), len(x))
	if len(x) == 0 || normal(&cdf[0], &density[0], &x[0], len(x)) {
		return
	}
	for i, v := range x {
		cdf[i], density[i] = normal32(v)
	}
}

// normal32 computes Φ(-|x|) as e^(-x²/2)·p(t): p is a polynomial of degree 8 in t = 1/(1 + 0.3·|x|) without a
// constant, with the smallest possible maximum of the relative error, 1.6e-7, for |x| up to 14.5. Φ(-14.5) is 0 in
// float32.
func normal32(x float32) (cdf, density float32) {
	e := exp32(float32(x*x) * -0.5)
	t := 1 / (1 + float32(0.3*max(-x, x)))
	p := float32(0.035423573*t) - 0.15615776
	p = float32(p*t) + 0.2045556
	p = float32(p*t) - 0.05203292
	p = float32(p*t) + 0.127691194
	p = float32(p*t) + 0.100176126
	p = float32(p*t) + 0.12071211
	p = float32(p*t) + 0.119632006
	cdf = e * float32(p*t)
	if x > 0 {
		cdf = 1 - cdf
	}
	return cdf, e * (1 / (math.SqrtPi * math.Sqrt2))
}

// power2 is 2^n, for n from -126 to 127.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// LogSoftmax computes o[i] = (x[i] - top) - log Σ_j e^(x[j]-top) for one row, where top is the
// maximum of x. The exponentials are float32 and their sum is float64, so that small probabilities
// count next to a large one. o may be x.
func LogSoftmax(o, x []float32) {
	checkLen("LogSoftmax", len(x), len(o))
	if len(o) == 0 {
		return
	}
	top := Greatest(x) + 0 // -0 becomes 0
	log := float32(math.Log(sumExp(x, top)))
	if sub2s(&o[0], &x[0], len(o), top, log) {
		return
	}
	for i, v := range x {
		o[i] = (v - top) - log
	}
}

// LogSoftmaxGrad computes d[i] = g[i] - e^y[i]·Σ_j g[j] for one row, where y is the result of
// LogSoftmax; with acc it adds this to d. The sum is computed in float64 and rounded. d may be g.
func LogSoftmaxGrad(d, g, y []float32, acc bool) {
	checkLen("LogSoftmaxGrad", len(g), len(d))
	checkLen("LogSoftmaxGrad", len(y), len(d))
	if len(d) == 0 {
		return
	}
	s := float32(Sum(g))
	if acc {
		if addMinusExp(&d[0], &g[0], &y[0], len(d), s) {
			return
		}
	} else if minusExp(&d[0], &g[0], &y[0], len(d), s) {
		return
	}
	for i := range d {
		e := g[i] - float32(exp32(y[i])*s)
		if acc {
			e += d[i]
		}
		d[i] = e
	}
}

// LogSumExp computes log Σ e^x for one row, as [LogSoftmax] does, and -Inf for an empty one.
func LogSumExp(x []float32) float64 {
	lse, _ := LogSumExpTop(x)
	return lse
}

// LogSumExpTop is LogSumExp that also returns the row's maximum, as [Greatest] does.
func LogSumExpTop(x []float32) (lse float64, top float32) {
	top = Greatest(x) + 0
	if len(x) == 0 {
		return math.Inf(-1), top
	}
	return float64(top) + math.Log(sumExp(x, top)), top
}

// Greatest returns the maximum of x without its NaN, or -Inf if no number is left.
func Greatest(x []float32) float32 {
	low := float32(math.Inf(-1))
	var top [16]float32
	for l := range top {
		top[l] = low
	}
	if !maxLanes(&top[0], &x[0], len(x)) {
		for i, v := range x {
			if v > top[i%16] {
				top[i%16] = v
			}
		}
	}
	for _, v := range top[:min(len(x), len(top))] {
		if v > low {
			low = v
		}
	}
	return low
}

// Sum computes Σ x in float64: 8 sums, of every 8th element each, added as
// ((0+4)+(2+6)) + ((1+5)+(3+7)).
func Sum(x []float32) float64 {
	var lanes [8]float64
	if len(x) > 0 && !sumLanes(&lanes[0], &x[0], len(x)) {
		for i, v := range x {
			lanes[i%8] += float64(v)
		}
	}
	return addLanes(&lanes)
}

// sumExp computes Σ e^(x[i]-s), in float64 and in Sum's order.
func sumExp(x []float32, s float32) float64 {
	var lanes [8]float64
	if !expLanes(&lanes[0], &x[0], len(x), s) {
		for i, v := range x {
			lanes[i%8] += float64(exp32(v - s))
		}
	}
	return addLanes(&lanes)
}

func addLanes(s *[8]float64) float64 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// Log1p computes o = log(1 + max(0, x)), within 2e-7 of the true value, and of a value above 1 within 2e-7 of it: 1 + x is rounded to
// float32. It takes the greatest float32 for +Inf, and gives NaN for NaN.
func Log1p(o, x []float32) {
	checkLen("Log1p", len(x), len(o))
	if len(o) == 0 || log1p(&o[0], &x[0], len(o)) {
		return
	}
	for i, v := range x {
		o[i] = log1p32(v)
	}
}

// log1p32 writes 1 + x as 2^n·m, with m from 2/3 to 4/3. With s = (m-1)/(m+1), log m is s·(2 + z·p(z)) with z = s², at most 1/25. p has degree 2
// and the smallest possible maximum of the relative error of log m, 2.8e-9.
func log1p32(x float32) float32 {
	if x != x {
		return x
	}
	y := 1 + min(max(x, 0), math.MaxFloat32)
	n := int32(math.Float32bits(y)-0x3f2aaaab) >> 23
	m := math.Float32frombits(math.Float32bits(y) - uint32(n)<<23)
	s := (m - 1) / (m + 1)
	z := s * s
	p := float32(0.30359063*z) + 0.3995791
	p = float32(p*z) + 0.6666695
	p = float32(p*z) + 2
	return float32(float32(n)*0.6931472) + float32(p*s)
}
