package store

import "math"

// toHalf is x as an f16, rounded to nearest, ties to even.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign, a := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | 0x7fff // NaN
	case a >= 0x477ff000: // 65520: what is nearer to 65536
		return sign | 0x7c00
	case a >= 0x38800000: // 2^-14
		// The exponent's bias is 112 more in f32; a carry into it is right.
		a -= 112 << 23
		return sign | uint16((a+0xfff+a>>13&1)>>13)
	}
	// Subnormal: a multiple of 2^-24, which the float's own addition rounds to: the sum's unit is 2^-24 at 0.5.
	return sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-math.Float32bits(0.5))
}

// halve puts src as f16 into the bytes of dst.
func halve(dst []byte, src []float32) {
	for i, x := range src {
		h := toHalf(x)
		dst[2*i], dst[2*i+1] = byte(h), byte(h>>8)
	}
}
