package tensor

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// biasReLUDropout and keptGrad are what AddRow, ReLU, Dropout and their gradients
// are one after the other, to the bit, cut into rows in any way.
func TestBiasReLUDropout(t *testing.T) {
	be := CPU(1)
	for _, cols := range []int{0, 1, 7, 16, 40, 63, 64, 65, 100, 256, 300} {
		const rows = 37
		t.Run(fmt.Sprint(cols), func(t *testing.T) {
			x, bias, dy := randomFloats(rows*cols, 1), randomFloats(cols, 2), randomFloats(rows*cols, 3)
			k := DropoutKey{Space: &Space{Start: 1 << 30}, Seed: 7, Step: 3, C3: 99, Threshold: 20000, Scale: 1.5}
			n, words := rows*cols, MaskWords(rows, cols)
			sum, act, want, mask := be.Alloc(n), be.Alloc(n), be.Alloc(n), be.Alloc(words)
			copy(sum.Host, x)
			be.AddRow(sum, HostBuffer(bias), rows, cols, true)
			be.Unary(ReLUOp, act, sum, 0, false)
			be.Dropout(want, mask, act, rows, cols, k)
			dAct, wantGrad := be.Alloc(n), be.Alloc(n)
			be.Mask(dAct, HostBuffer(dy), mask, rows, cols, k.Scale, false)
			be.UnaryGrad(ReLUOp, wantGrad, dAct, sum, act, 0, false)

			got, gotMask := slices.Clone(x), maskBytes(be.Alloc(words))
			grad := slices.Clone(dy)
			for _, cut := range [][2]int{{0, 5}, {5, 6}, {6, 6}, {6, rows}} {
				biasReLUDropout(got, bias, gotMask, cols, cut[0], cut[1], k)
				keptGrad(grad, grad, gotMask, cols, cut[0], cut[1], k.Scale, false)
			}
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want.Host[i]) {
					t.Fatalf("element %d is %g, want %g", i, got[i], want.Host[i])
				}
				if grad[i] != wantGrad.Host[i] {
					t.Fatalf("gradient %d is %g, want %g", i, grad[i], wantGrad.Host[i])
				}
			}
		})
	}
}
