package simd

import "math"

// finiteChunk is the elements that [Finite] adds the squares of at a time.
const finiteChunk = 1 << 13

// Finite says whether x has neither NaN nor an infinity. It reads x once at the speed of
// [Dot]: a sum of squares is finite only where all of them are. Only where one is not,
// which numbers above 1e19 are enough for, the elements are looked at one by one.
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

// NotFinite returns the index of the first element of x that is NaN or an infinity, -1 where
// there is none.
func NotFinite(x []float32) int {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
