package ptx

import "math"

// Exact results are kept as float64 rounded to odd: a result that is not representable becomes the
// neighbour with an odd last bit. Rounding that to 24 or 11 bits, in any mode, gives what rounding
// the exact result would. Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded
// sums", IEEE Trans. Computers 57(4), 2008, doi:10.1109/TC.2007.70819.

// odd returns s + e rounded to odd; s + e is the exact value and s is that value rounded to
// nearest.
func odd(s, e float64) float64 {
	b := math.Float64bits(s)
	if e == 0 || b&1 != 0 || math.IsInf(s, 0) || s != s || e != e {
		return s
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

func oddAdd(a, b float64) float64 {
	s := a + b
	// Knuth's two-sum.
	t := s - a
	return odd(s, (a-(s-t))+(b-t))
}

// oddFMA requires factors of at most 24 significant bits, whose product is exact.
func oddFMA(a, b, c float64) float64 { return oddAdd(float64(a*b), c) }

func oddDiv(a, b float64) float64 {
	q := a / b
	if q == 0 || math.IsInf(q, 0) || q != q || math.IsInf(b, 0) {
		return q
	}
	r := math.FMA(-q, b, a)
	if b < 0 {
		r = -r
	}
	return odd(q, r)
}

func oddSqrt(a float64) float64 {
	q := math.Sqrt(a)
	if q == 0 || math.IsInf(q, 0) || q != q {
		return q
	}
	return odd(q, math.FMA(-q, q, a))
}

// oddInt returns an integer's magnitude as a float64 rounded to odd.
func oddInt(u uint64) float64 {
	if u < 1<<53 {
		return float64(u)
	}
	sticky := truth(u&(1<<11-1) != 0)
	return float64(u>>11|sticky) * (1 << 11)
}

const nan32, nan16 = 0x7fffffff, 0x7fff

// round32 returns the bits of x as an f32, by the mode n, z, m (down) or p (up).
func round32(x float64, mode byte) uint64 {
	f := float32(x)
	if f != f {
		return nan32
	}
	if mode != 'n' && float64(f) != x && !math.IsInf(x, 0) {
		up := float64(f) > x
		switch {
		case up && (mode == 'm' || mode == 'z' && x > 0):
			f = math.Nextafter32(f, float32(math.Inf(-1)))
		case !up && (mode == 'p' || mode == 'z' && x < 0):
			f = math.Nextafter32(f, float32(math.Inf(1)))
		}
	}
	b := math.Float32bits(f)
	if f == 0 && math.Signbit(x) {
		b = 1 << 31
	}
	return uint64(b)
}

// round16 returns the bits of x as an f16.
func round16(x float64, mode byte) uint64 {
	sign := uint64(0)
	if math.Signbit(x) {
		sign = 1 << 15
	}
	a := math.Abs(x)
	switch {
	case x != x:
		return nan16
	case math.IsInf(a, 0):
		return sign | 0x7c00
	case a == 0:
		return sign
	}
	_, e := math.Frexp(a) // a is in [2^(e-1), 2^e)
	unit := max(e-1, -14) - 10
	n := math.Ldexp(a, -unit)
	switch away := mode == 'p' && sign == 0 || mode == 'm' && sign != 0; {
	case mode == 'n':
		n = math.RoundToEven(n)
	case away:
		n = math.Ceil(n)
	default:
		n = math.Floor(n)
	}
	if math.Ldexp(n, unit) > 65504 {
		if mode == 'n' || mode == 'p' && sign == 0 || mode == 'm' && sign != 0 {
			return sign | 0x7c00
		}
		return sign | 0x7bff
	}
	// The leading bit of n adds 1 to the exponent field, and so does a carry.
	return sign | uint64(int64(unit+24)<<10+int64(n))
}

// half returns the value of an f16.
func half(b uint64) float64 {
	m, e := float64(b&0x3ff), int(b>>10&31)
	switch e {
	case 31:
		if m != 0 {
			return math.NaN()
		}
		m = math.Inf(1)
	case 0:
		m = math.Ldexp(m, -24)
	default:
		m = math.Ldexp(m+1024, e-25)
	}
	if b>>15&1 != 0 {
		return -m
	}
	return m
}
