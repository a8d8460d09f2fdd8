package ptx

import "math"

func f32(b uint64) float32 { return math.Float32frombits(uint32(b)) }

// bits32 returns a result's bits.
func bits32(f float32) uint64 {
	if f != f {
		return nan32
	}
	return uint64(math.Float32bits(f))
}

func addF32(t *thread, in *instr) { t.r[in.d] = bits32(f32(t.r[in.a]) + f32(t.r[in.b])) }
func subF32(t *thread, in *instr) { t.r[in.d] = bits32(f32(t.r[in.a]) - f32(t.r[in.b])) }
func mulF32(t *thread, in *instr) { t.r[in.d] = bits32(f32(t.r[in.a]) * f32(t.r[in.b])) }
func fmaF32(t *thread, in *instr) {
	a, b, c := float64(f32(t.r[in.a])), float64(f32(t.r[in.b])), float64(f32(t.r[in.c]))
	t.r[in.d] = bits32(float32(oddFMA(a, b, c)))
}

// format converts values of a type to float64 and back.
type format struct {
	value func(b uint64) float64
	bits  func(x float64, f flags) uint64
	sign  uint64 // the sign bit
}

var formats = map[uint8]format{
	16: {half, func(x float64, f flags) uint64 { return round16(clamp(x, f), f.mode) }, 1 << 15},
	32: {func(b uint64) float64 { return float64(f32(b)) }, bits32of, 1 << 31},
	64: {math.Float64frombits, func(x float64, f flags) uint64 { return math.Float64bits(clamp(x, f)) }, 1 << 63},
}

func bits32of(x float64, f flags) uint64 {
	b := round32(clamp(x, f), f.mode)
	if f.ftz {
		b = flush(b)
	}
	return b
}

// clamp implements .sat: it clamps to [0, 1] and turns NaN into 0.
func clamp(x float64, f flags) float64 {
	if !f.sat {
		return x
	}
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// flush implements .ftz: it replaces subnormal numbers by zeros of the same sign.
func flush(b uint64) uint64 {
	if b&0x7f800000 == 0 {
		return b & (1 << 31)
	}
	return b
}

// float returns an operation on a floating-point type, or nil.
func float(op string, t typ, f flags) function {
	if t.class == 'h' {
		return pair(op, f)
	}
	if t.class == 'b' && t.bits == 16 {
		t.class = 'f' // neg.b16 and abs.b16 of old compilers
	}
	ft, ok := formats[t.bits]
	if !ok || t.class != 'f' {
		return nil
	}
	switch op {
	case "abs":
		return func(x, _, _ uint64) uint64 { return flushIf(x, t, f) &^ ft.sign }
	case "neg":
		return func(x, _, _ uint64) uint64 { return flushIf(x, t, f) ^ ft.sign }
	case "copysign": // of the first operand, to the second
		return func(x, y, _ uint64) uint64 { return y&^ft.sign | x&ft.sign }
	}
	if t.bits == 64 {
		return double(op, f)
	}
	g := value(op, f)
	if g == nil {
		return nil
	}
	return func(x, y, z uint64) uint64 {
		if f.ftz && t.bits == 32 {
			x, y, z = flush(x), flush(y), flush(z)
		}
		return ft.bits(g(ft.value(x), ft.value(y), ft.value(z)), f)
	}
}

func flushIf(x uint64, t typ, f flags) uint64 {
	if f.ftz && t.bits == 32 {
		return flush(x)
	}
	return x
}

// value returns an operation on values of at most 24 significant bits, rounded to odd.
func value(op string, f flags) func(a, b, c float64) float64 {
	switch op {
	case "add":
		return func(a, b, _ float64) float64 { return zeroSum(oddAdd(a, b), a, b, f) }
	case "sub":
		return func(a, b, _ float64) float64 { return zeroSum(oddAdd(a, -b), a, -b, f) }
	case "mul":
		return func(a, b, _ float64) float64 { return a * b }
	case "fma":
		return func(a, b, c float64) float64 { return zeroSum(oddFMA(a, b, c), float64(a*b), c, f) }
	case "div":
		return func(a, b, _ float64) float64 { return oddDiv(a, b) }
	case "rcp":
		return func(a, _, _ float64) float64 { return oddDiv(1, a) }
	case "sqrt":
		return func(a, _, _ float64) float64 { return oddSqrt(a) }
	case "rsqrt":
		return func(a, _, _ float64) float64 { return 1 / math.Sqrt(a) }
	case "ex2":
		return func(a, _, _ float64) float64 { return math.Exp2(a) }
	case "lg2":
		return func(a, _, _ float64) float64 { return math.Log2(a) }
	case "sin":
		return func(a, _, _ float64) float64 { return math.Sin(a) }
	case "cos":
		return func(a, _, _ float64) float64 { return math.Cos(a) }
	case "tanh":
		return func(a, _, _ float64) float64 { return math.Tanh(a) }
	case "min", "max":
		return func(a, b, _ float64) float64 { return extreme(op == "max", f.nan, a, b) }
	}
	return nil
}

// zeroSum sets the sign of a sum that is exactly zero: when rounding down, a sum of numbers that
// cancel is negative.
func zeroSum(s, a, b float64, f flags) float64 {
	if f.mode == 'm' && s == 0 && math.Signbit(a) != math.Signbit(b) {
		return math.Copysign(0, -1)
	}
	return s
}

// extreme returns the larger or the smaller of two numbers. If one is NaN, it returns the other,
// unless nan is set; -0 is less than 0.
func extreme(larger, nan bool, a, b float64) float64 {
	switch {
	case a != a && (nan || b != b) || b != b && nan:
		return math.NaN()
	case a != a:
		return b
	case b != b:
		return a
	case larger:
		return math.Max(a, b)
	}
	return math.Min(a, b)
}

// double returns an operation on float64, rounded to nearest.
func double(op string, f flags) function {
	var g func(a, b, c float64) float64
	switch op {
	case "add":
		g = func(a, b, _ float64) float64 { return a + b }
	case "sub":
		g = func(a, b, _ float64) float64 { return a - b }
	case "mul":
		g = func(a, b, _ float64) float64 { return a * b }
	case "fma":
		g = math.FMA
	case "div":
		g = func(a, b, _ float64) float64 { return a / b }
	case "rcp":
		g = func(a, _, _ float64) float64 { return 1 / a }
	case "sqrt":
		g = func(a, _, _ float64) float64 { return math.Sqrt(a) }
	case "rsqrt", "min", "max":
		g = value(op, f)
	default:
		return nil
	}
	return func(x, y, z uint64) uint64 {
		return math.Float64bits(clamp(g(math.Float64frombits(x), math.Float64frombits(y), math.Float64frombits(z)), f))
	}
}

// pair returns an operation on both halves of two f16.
func pair(op string, f flags) function {
	g := float(op, typ{16, 'f'}, f)
	if g == nil {
		return nil
	}
	return func(x, y, z uint64) uint64 {
		return g(x&0xffff, y&0xffff, z&0xffff) | g(x>>16, y>>16, z>>16)<<16
	}
}
