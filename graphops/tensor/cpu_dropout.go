package tensor

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/graphnb/graphnb/internal/philox"
)

// Dropout makes the mask a byte (one Philox block, 8 columns) at a time, two
// blocks interleaved: a block alone waits for its own multiplications.
func (c *cpu) Dropout(out, mask, x Buffer, rows, cols int, k DropoutKey) {
	width := (cols + 7) / 8
	m := maskBytes(mask)
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := m[r*width : (r+1)*width]
			ctr := philox.Counter(k.Space.ID(r), k.Step, k.C3)
			i := 0
			for ; i+2 <= len(row); i += 2 {
				row[i], row[i+1] = keepBits2(k.Seed, ctr, uint32(i), k.Threshold)
			}
			if i < len(row) {
				ctr[1] |= uint32(i)
				row[i] = keepBits(philox.Block(k.Seed, ctr), k.Threshold)
			}
			maskRow(out.Host[r*cols:(r+1)*cols], x.Host[r*cols:(r+1)*cols], row, k.Scale, false)
		}
	})
}

func (c *cpu) Mask(out, x, mask Buffer, rows, cols int, scale float32, acc bool) {
	width := (cols + 7) / 8
	m := maskBytes(mask)
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			maskRow(out.Host[r*cols:(r+1)*cols], x.Host[r*cols:(r+1)*cols], m[r*width:(r+1)*width], scale, acc)
		}
	})
}

// maskBytes is a mask's words as bytes. The order of the bytes within a word is
// the machine's, which is little-endian wherever this runs.
func maskBytes(mask Buffer) []byte {
	w := mask.Words()
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 4*len(w))
}

// maskRow is o = scale·x where the bit of keep is set, else exactly 0, also
// where x is infinite.
func maskRow(o, x []float32, keep []byte, scale float32, acc bool) {
	x = x[:len(o)]
	for i, k := range keep {
		if acc || len(o) < 8 {
			maskTail(o, x, uint32(k), scale, acc)
		} else {
			b := uint32(k)
			p, q := (*[8]float32)(o), (*[8]float32)(x)
			p[0] = keepIf(q[0]*scale, b&1)
			p[1] = keepIf(q[1]*scale, b>>1&1)
			p[2] = keepIf(q[2]*scale, b>>2&1)
			p[3] = keepIf(q[3]*scale, b>>3&1)
			p[4] = keepIf(q[4]*scale, b>>4&1)
			p[5] = keepIf(q[5]*scale, b>>5&1)
			p[6] = keepIf(q[6]*scale, b>>6&1)
			p[7] = keepIf(q[7]*scale, b>>7)
		}
		if i+1 < len(keep) {
			o, x = o[8:], x[8:]
		}
	}
}

// maskTail is maskRow for up to 8 columns.
func maskTail(o, x []float32, keep uint32, scale float32, acc bool) {
	for c := range min(8, len(o)) {
		v := keepIf(x[c]*scale, keep>>c&1)
		if acc {
			v += o[c]
		}
		o[c] = v
	}
}

func keepIf(v float32, bit uint32) float32 {
	return math.Float32frombits(math.Float32bits(v) & -bit)
}

// keepBits has bit l set where 16-bit lane l of w is not below threshold.
func keepBits(w [4]uint32, threshold uint32) byte {
	var drop uint32
	for i, v := range w {
		drop |= (v&0xffff-threshold)>>31<<(2*i) | (v>>16-threshold)>>31<<(2*i+1)
	}
	return ^byte(drop)
}

// keepBits2 is keepBits of draw blocks i and i+1 of the counter.
func keepBits2(key uint64, c [4]uint32, i, threshold uint32) (byte, byte) {
	const mul0, mul1, wey0, wey1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
	k0, k1 := uint32(key), uint32(key>>32)
	a0, a1, a2, a3 := c[0], c[1]|i, c[2], c[3]
	b0, b1, b2, b3 := c[0], c[1]|(i+1), c[2], c[3]
	for range 10 {
		ah0, al0 := bits.Mul32(mul0, a0)
		bh0, bl0 := bits.Mul32(mul0, b0)
		ah1, al1 := bits.Mul32(mul1, a2)
		bh1, bl1 := bits.Mul32(mul1, b2)
		a0, a1, a2, a3 = ah1^a1^k0, al1, ah0^a3^k1, al0
		b0, b1, b2, b3 = bh1^b1^k0, bl1, bh0^b3^k1, bl0
		k0 += wey0
		k1 += wey1
	}
	return keepBits([4]uint32{a0, a1, a2, a3}, threshold), keepBits([4]uint32{b0, b1, b2, b3}, threshold)
}
