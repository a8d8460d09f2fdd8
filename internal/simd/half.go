package simd

import "math"

// Float16 numbers (IEEE 754 binary16) are stored as uint16: a sign bit, 5 bits of exponent, 10 of
// fraction. Every float16 is exactly representable as float32, so FromHalf is exact.

// MaxHalf is the greatest finite float16.
const MaxHalf = 65504

// FromHalf computes dst[i] = src[i], exactly. A NaN becomes a quiet one.
func FromHalf(dst []float32, src []uint16) {
	checkLen("FromHalf", len(dst), len(src))
	whole := len(src) &^ 15
	if whole == 0 || !fromHalf16(&dst[0], &src[0], whole) {
		whole = 0
	}
	for i := whole; i < len(src); i++ {
		dst[i] = halfToFloat(src[i])
	}
}

// ToHalf computes dst[i] = src[i], rounded to nearest, ties to even. A value nearer to 2^16 than to
// [MaxHalf] becomes infinite, and a value not above 2^-25 becomes 0.
func ToHalf(dst []uint16, src []float32) {
	checkLen("ToHalf", len(dst), len(src))
	for i, x := range src {
		dst[i] = floatToHalf(x)
	}
}

func halfToFloat(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case e == 31 && m != 0:
		return math.Float32frombits(sign | 0x7fc00000 | m<<13)
	case e == 31:
		return math.Float32frombits(sign | 0x7f800000)
	case e == 0: // a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}

func floatToHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign, a := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | 0x7e00 | uint16(a>>13&0x1ff)
	case a >= 0x477ff000: // 65520: nearer to 65536 than to MaxHalf
		return sign | 0x7c00
	case a >= 0x38800000: // 2^-14
		// The exponent's bias is 112 more in float32. A carry from the fraction into the exponent
		// gives the right result.
		a -= 112 << 23
		return sign | uint16((a+0xfff+a>>13&1)>>13)
	}
	// Subnormal: a multiple of 2^-24. The float32 addition of 0.5 rounds to such a multiple,
	// because 2^-24 is the unit in the last place at 0.5.
	return sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-math.Float32bits(0.5))
}
