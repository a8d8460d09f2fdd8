package simd

import "math"

// KeepReLU computes, element by element, o = scale·(o + bias) if that sum is above 0 (or NaN) and
// the element's bit is set, and exactly 0 otherwise. The bit is then cleared for elements that
// became 0. A nil bias adds nothing. Column c has bit c%8 of byte c/8; the padding bits of the last
// byte are cleared.
//
// The gradient of the whole is one [Mask] with the resulting bits.
func KeepReLU(o, bias []float32, bits []byte, scale float32) {
	if bias != nil {
		checkLen("KeepReLU", len(bias), len(o))
	}
	checkLen("KeepReLU", len(bits), (len(o)+7)/8)
	var b *float32
	if len(bias) > 0 {
		b = &bias[0]
	}
	if len(o) == 0 || keepReLU(&o[0], b, &bits[0], len(o), scale) {
		return
	}
	keepReLUGo(o, bias, bits, scale)
}

func keepReLUGo(o, bias []float32, bits []byte, scale float32) {
	for b := range bits {
		var passed byte
		for l := range min(8, len(o)-8*b) {
			c := 8*b + l
			v := o[c]
			if bias != nil {
				v += bias[c]
			}
			if bits[b]>>l&1 == 1 && !(v <= 0) {
				passed |= 1 << l
				o[c] = v * scale
			} else {
				o[c] = 0
			}
		}
		bits[b] = passed
	}
}

// KeepColumns is [Mask] for elements of arbitrary columns: o[i] = scale·x[i] (scale if x is nil) if
// bit cols[i]%8 of keep[i] is set, and otherwise exactly 0, even if x is NaN or infinite. It has no
// branches on the bits, because random bits make them unpredictable. Columns must not be negative.
func KeepColumns(o, x []float32, cols []int32, keep []byte, scale float32) {
	const op = "KeepColumns"
	n := len(o)
	checkLen(op, len(cols), n)
	checkLen(op, len(keep), n)
	var in *float32
	if x != nil {
		checkLen(op, len(x), n)
	}
	if len(x) > 0 {
		in = &x[0]
	}
	const lanes = 16
	whole := n &^ (lanes - 1)
	if whole > 0 && !keepColumns(&o[0], in, &cols[0], &keep[0], whole, scale) {
		whole = 0
	}
	for i := whole; i < n; i++ {
		v := scale
		if x != nil {
			v = x[i] * scale
		}
		o[i] = math.Float32frombits(math.Float32bits(v) & -uint32(keep[i]>>(cols[i]&7)&1))
	}
}

// Mask computes o = scale·x where the bit is set and exactly 0 elsewhere, even if x is NaN or
// infinite; with acc it adds this to o. bits has the layout of [KeepReLU].
func Mask(o, x []float32, bits []byte, scale float32, acc bool) {
	checkLen("Mask", len(x), len(o))
	checkLen("Mask", len(bits), (len(o)+7)/8)
	switch {
	case len(o) == 0:
	case acc:
		if !maskAdd(&o[0], &x[0], &bits[0], len(o), scale) {
			for c := range o {
				if bits[c/8]>>(c%8)&1 == 1 {
					o[c] += float32(x[c] * scale)
				}
			}
		}
	case !mask(&o[0], &x[0], &bits[0], len(o), scale):
		for c := range o {
			bit := uint32(bits[c/8] >> (c % 8) & 1)
			o[c] = math.Float32frombits(math.Float32bits(x[c]*scale) & -bit)
		}
	}
}
