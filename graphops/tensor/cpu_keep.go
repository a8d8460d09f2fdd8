package tensor

import (
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
)

// biasReLUDropout is rows [lo, hi) of out = dropout(relu(out + bias)) in place,
// with bias [cols] or nil, for the goroutine that has just made these rows. The
// mask's bits (see [MaskWords]; rows of ⌈cols/8⌉ bytes) become those of elements
// that are both kept and positive, NaN included: the gradient of the whole is
// keptGrad with them.
func biasReLUDropout(out, bias []float32, mask []byte, cols, lo, hi int, k DropoutKey) {
	width := (cols + 7) / 8
	keepRows(mask, width, lo, hi, k)
	for r := lo; r < hi; r++ {
		simd.KeepReLU(out[r*cols:(r+1)*cols], bias, mask[r*width:(r+1)*width], k.Scale)
	}
}

// keptGrad is rows [lo, hi) of dx = scale·dy where the mask's bit is set, else 0,
// or dx += with acc. dx may be dy.
func keptGrad(dx, dy []float32, mask []byte, cols, lo, hi int, scale float32, acc bool) {
	width := (cols + 7) / 8
	for r := lo; r < hi; r++ {
		simd.Mask(dx[r*cols:(r+1)*cols], dy[r*cols:(r+1)*cols], mask[r*width:(r+1)*width], scale, acc)
	}
}

// keepRows draws rows [lo, hi) of a dropout mask whose rows are width bytes. Rows
// of few blocks are drawn together: their bytes lie one behind the other.
func keepRows(mask []byte, width, lo, hi int, k DropoutKey) {
	const lanes = 8
	if width >= lanes {
		for r := lo; r < hi; r++ {
			simd.KeepBits(mask[r*width:(r+1)*width], k.Seed, philox.Counter(k.Space.ID(r), k.Step, k.C3), k.Threshold)
		}
		return
	}
	var c0, c1 [32 * lanes]uint32
	for width > 0 && lo < hi {
		rows := min(hi-lo, len(c0)/width)
		for i := range rows {
			ctr := philox.Counter(k.Space.ID(lo+i), k.Step, k.C3)
			for b := range width {
				c0[i*width+b], c1[i*width+b] = ctr[0], ctr[1]|uint32(b)
			}
		}
		n := rows * width
		simd.KeepBitsAt(mask[lo*width:][:n], k.Seed, c0[:n], c1[:n], uint32(k.Step), k.C3, k.Threshold)
		lo += rows
	}
}
