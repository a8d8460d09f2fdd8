package ops

import (
	"unsafe"

	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
)

func (c *Processor) Dropout(out, mask, x Buffer, rows, cols int, k DropoutKey) {
	m := maskBytes(mask)
	c.eachRow(rows, cols, func(lo, hi int) {
		keepRows(m, (cols+7)/8, lo, hi, k)
		maskRows(out.Host, x.Host, m, cols, lo, hi, k.Scale, false)
	})
}

func (c *Processor) Mask(out, x, mask Buffer, rows, cols int, scale float32, acc bool) {
	m := maskBytes(mask)
	c.eachRow(rows, cols, func(lo, hi int) { maskRows(out.Host, x.Host, m, cols, lo, hi, scale, acc) })
}

// maskBytes returns a mask's words as bytes. The order of the bytes within a word is the machine's,
// which is little-endian on every supported platform.
func maskBytes(mask Buffer) []byte {
	w := mask.Words()
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 4*len(w))
}

// maskRows computes rows [lo, hi) of out = scale·x where the mask's bit is set, else exactly 0,
// also where x is infinite.
func maskRows(out, x []float32, mask []byte, cols, lo, hi int, scale float32, acc bool) {
	width := (cols + 7) / 8
	for r := lo; r < hi; r++ {
		simd.Mask(out[r*cols:(r+1)*cols], x[r*cols:(r+1)*cols], mask[r*width:(r+1)*width], scale, acc)
	}
}

// keepBatch is the number of mask bytes that are drawn together if they are of several rows.
const keepBatch = 256

// keepRows draws rows [lo, hi) of a mask whose rows are width bytes. Short rows are drawn together,
// since they are contiguous.
func keepRows(mask []byte, width, lo, hi int, k DropoutKey) {
	const narrow = 8
	if width >= narrow {
		for r := lo; r < hi; r++ {
			keepRow(mask[r*width:(r+1)*width], r, &k)
		}
		return
	}
	var c0, c1 [keepBatch]uint32
	for width > 0 && lo < hi {
		rows := min(hi-lo, keepBatch/width)
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

// keepRow draws the mask of row r.
func keepRow(bits []byte, r int, k *DropoutKey) {
	simd.KeepBits(bits, k.Seed, philox.Counter(k.Space.ID(r), k.Step, k.C3), k.Threshold)
}
