package simd

import "math"

// finiteChunk is the number of elements whose squares [Finite] adds at a time.
const finiteChunk = 1 << 13

// Finite reports whether x has neither NaN nor an infinity. It reads x once at the speed of [Dot]:
// a sum of squares is finite only if all elements are. If a sum is not finite, for which numbers
// above 1e19 suffice, Finite checks the elements one by one.
func Finite(x []float32) bool {
	for len(x) > 0 {
		n := min(len(x), finiteChunk)
		if s := Dot(x[:n], x[:n]); s-s != 0 && NotFinite(x[:n]) >= 0 {
			return false
		}
		x = x[n:]
	}
	return true
}

// NotFinite returns the index of the first element of x that is NaN or an infinity, -1 if there is
// none.
func NotFinite(x []float32) int {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
