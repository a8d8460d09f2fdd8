package simd

import (
	"fmt"
	"math"
	"testing"
)

// plainNorm computes NormRows one row after another.
func plainNorm(y, inv, x []float32, cols int, eps float32) {
	for r := range inv {
		in, out := x[r*cols:(r+1)*cols], y[r*cols:(r+1)*cols]
		sum, square := 0.0, 0.0
		for _, v := range in {
			sum += float64(v)
		}
		mean := sum / float64(max(cols, 1))
		for _, v := range in {
			d := float64(v) - mean
			square += float64(d * d)
		}
		s := 1 / math.Sqrt(square/float64(max(cols, 1))+float64(eps))
		inv[r] = float32(s)
		for i, v := range in {
			out[i] = float32((float64(v) - mean) * s)
		}
	}
}

// plainNormGrad computes NormRowsGrad one row after another.
func plainNormGrad(dx, dy, y, inv []float32, cols int, acc bool) {
	for r := range inv {
		d, g, v := dx[r*cols:(r+1)*cols], dy[r*cols:(r+1)*cols], y[r*cols:(r+1)*cols]
		sum, along := 0.0, 0.0
		for i := range g {
			sum += float64(g[i])
			along += float64(float64(g[i]) * float64(v[i]))
		}
		n := float64(max(cols, 1))
		for i := range d {
			e := float32(float64(inv[r]) * (float64(g[i]) - sum/n - float64(float64(v[i])*along)/n))
			if acc {
				e += d[i]
			}
			d[i] = e
		}
	}
}

func TestNormRowsHaveTheBitsOfPlainLoops(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, rows := range []int{0, 1, 7, 8, 9, 12, 21} {
				for _, data := range []func(n int) []float32{
					func(n int) []float32 { return randoms(r, n, rows%3) },
					func(n int) []float32 { return withSpecials(r, n, 1) },
				} {
					what := fmt.Sprintf("%d rows of %d", rows, cols)
					x, dy := data(rows*cols), data(rows*cols)
					want, wantInv := make([]float32, rows*cols), make([]float32, rows)
					plainNorm(want, wantInv, x, cols, 1e-5)
					y, inv := guarded(want), guarded(wantInv)
					clear(y)
					clear(inv)
					NormRows(y, inv, x, cols, 1e-5)
					sameBits(t, what, cols, y, want)
					sameBits(t, what+", inv", cols, inv, wantInv)
					for _, acc := range []bool{false, true} {
						start := data(rows * cols)
						grad := append([]float32(nil), start...)
						plainNormGrad(grad, dy, want, wantInv, cols, acc)
						dx := guarded(start)
						NormRowsGrad(dx, dy, y, inv, cols, acc)
						sameBits(t, fmt.Sprintf("%s, gradient, acc=%v", what, acc), cols, dx, grad)
					}
					inPlace := guarded(dy)
					NormRowsGrad(inPlace, inPlace, y, inv, cols, false)
					plainNormGrad(dy, dy, want, wantInv, cols, false)
					sameBits(t, what+", gradient in place", cols, inPlace, dy)
				}
			}
		}
	})
}
