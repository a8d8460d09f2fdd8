package simd

import (
	"bytes"
	"testing"

	"github.com/graphnb/graphnb/internal/philox"
)

func randomBits(r interface{ Uint32() uint32 }, cols int) []byte {
	bits := make([]byte, (cols+7)/8, (cols+7)/8+1)
	for i := range bits {
		bits[i] = byte(r.Uint32())
	}
	return bits
}

func TestKeepReLU(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, withBias := range []bool{false, true} {
				o, scale := withSpecials(r, cols, 1), float32(1.25)
				var bias []float32
				if withBias {
					bias = withSpecials(r, cols, 2)
				}
				bits := randomBits(r, cols)
				want, passed := make([]float32, cols), make([]byte, len(bits))
				for c := range want {
					v := o[c]
					if withBias {
						v += bias[c]
					}
					if bits[c/8]>>(c%8)&1 == 1 && (v > 0 || v != v) {
						want[c] = v * scale
						passed[c/8] |= 1 << (c % 8)
					}
				}
				got := guarded(o)
				all := append(bits, 0xa5)
				KeepReLU(got, bias, bits, scale)
				sameBits(t, "KeepReLU", cols, got, want)
				if !bytes.Equal(bits, passed) || all[len(bits)] != 0xa5 {
					t.Fatalf("%d columns: the bits are %x, want %x", cols, bits, passed)
				}
			}
		}
	})
}

func TestMask(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, acc := range []bool{false, true} {
				o, x, bits := withSpecials(r, cols, 1), withSpecials(r, cols, 3), randomBits(r, cols)
				want := make([]float32, cols)
				for c := range want {
					bit := bits[c/8]>>(c%8)&1 == 1
					if bit {
						want[c] = x[c] * 1.7
					}
					if acc && bit {
						want[c] += o[c]
					} else if acc {
						want[c] = o[c]
					}
				}
				got := guarded(o)
				Mask(got, x, bits, 1.7, acc)
				sameBits(t, "Mask", cols, got, want)
			}
		}
	})
}

// The bits are those of philox.Block and the definition of the lanes.
func TestKeepBits(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for n := range 70 {
			for _, threshold := range []uint32{0, 1, 1 << 15, 13107, 65535, 65536} {
				key := r.Uint64()
				ctr := [4]uint32{r.Uint32(), r.Uint32() &^ 0xffff, r.Uint32(), r.Uint32()}
				c0, c1 := make([]uint32, n), make([]uint32, n)
				want, wantAt := make([]byte, n), make([]byte, n)
				for i := range n {
					c0[i], c1[i] = r.Uint32(), r.Uint32()
					draw := func(c [4]uint32) (b byte) {
						w := philox.Block(key, c)
						for l := range 8 {
							if w[l/2]>>(l%2*16)&0xffff >= threshold {
								b |= 1 << l
							}
						}
						return b
					}
					want[i] = draw([4]uint32{ctr[0], ctr[1] | uint32(i), ctr[2], ctr[3]})
					wantAt[i] = draw([4]uint32{c0[i], c1[i], ctr[2], ctr[3]})
				}
				got := append(make([]byte, n), 0xa5)
				KeepBits(got[:n], key, ctr, threshold)
				if !bytes.Equal(got[:n], want) || got[n] != 0xa5 {
					t.Fatalf("%d blocks, threshold %d: bits %x, want %x", n, threshold, got, want)
				}
				KeepBitsAt(got[:n], key, c0, c1, ctr[2], ctr[3], threshold)
				if !bytes.Equal(got[:n], wantAt) || got[n] != 0xa5 {
					t.Fatalf("%d blocks at random, threshold %d: bits %x, want %x", n, threshold, got, wantAt)
				}
			}
		}
	})
}

func TestKeepColumns(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, n := range sizes {
			for _, values := range []bool{false, true} {
				cols, keep := make([]int32, n), make([]byte, n)
				for i := range cols {
					cols[i], keep[i] = r.Int32(), byte(r.Uint32())
				}
				const scale = 1.25
				var x []float32
				if values {
					x = withSpecials(r, n, 1)
				}
				want := make([]float32, n)
				for i := range want {
					switch {
					case keep[i]>>(cols[i]%8)&1 == 0:
					case values:
						want[i] = scale * x[i]
					default:
						want[i] = scale
					}
				}
				got := guarded(withSpecials(r, n, 0))
				KeepColumns(got, x, cols, keep, scale)
				sameBits(t, "KeepColumns", n, got, want)
			}
		}
	})
}
