package simd

import (
	"math"
	"math/bits"
)

// normRows is the number of rows that the summing kernels process at a time.
const normRows = 8

// NormRows computes y[r,:] = (x[r,:] - mean) / √(variance + eps) for rows of cols elements, with
// the row's mean and variance (the mean of squared distances); inv[r] becomes 1/√(variance + eps).
// It computes in float64, adds one element after the other, and rounds once. Cost: x is read three
// times, y is written once.
func NormRows(y, inv, x []float32, cols int, eps float32) {
	checkLen("NormRows", len(x), len(inv)*cols)
	checkLen("NormRows", len(y), len(x))
	n := float64(max(cols, 1))
	eachNormRows(len(inv), cols, func(base, from, to, head int) {
		block := x[base*cols : to*cols]
		var mean, square [normRows]float64
		if head > 0 && !normSums(&mean[0], &block[0], 4*cols, head) {
			head = 0
		}
		for i := from - base; i < to-base; i++ {
			for _, v := range block[i*cols+head : (i+1)*cols] {
				mean[i] += float64(v)
			}
			mean[i] /= n
		}
		if head > 0 {
			normSquares(&square[0], &mean[0], &block[0], 4*cols, head)
		}
		for i := from - base; i < to-base; i++ {
			for _, v := range block[i*cols+head : (i+1)*cols] {
				d := float64(v) - mean[i]
				square[i] += float64(d * d)
			}
			s := 1 / math.Sqrt(square[i]/n+float64(eps))
			inv[base+i] = float32(s)
			in, out := block[i*cols:(i+1)*cols], y[(base+i)*cols:(base+i+1)*cols]
			done := 0
			if whole := cols &^ 7; whole > 0 && normRow(&out[0], &in[0], whole, mean[i], s) {
				done = whole
			}
			for k := done; k < cols; k++ {
				out[k] = float32((float64(in[k]) - mean[i]) * s)
			}
		}
	})
}

// eachNormRows runs f for blocks of rows [from, to). The summing kernels process normRows rows from
// base on, of which the last block may repeat some, and their first head columns; head is 0 if the
// matrix is too small for the kernels.
func eachNormRows(rows, cols int, f func(base, from, to, head int)) {
	head := cols &^ 3
	if rows < normRows {
		head = 0
	}
	for from := 0; from < rows; from += normRows {
		to := min(from+normRows, rows)
		base := from
		if head > 0 {
			base = to - normRows
		}
		f(base, from, to, head)
	}
}

// NormRowsGrad is the gradient of [NormRows]:
//
//	dx[r,:] = inv[r]·(dy[r,:] - mean(dy[r,:]) - y[r,:]·mean(dy[r,:]·y[r,:]))
//
// With acc it adds this to dx. It computes in float64, adds one element after the other, and
// rounds; the addition to dx is rounded separately. dx may be dy. Cost: dy and y are read twice, dx
// is written once.
func NormRowsGrad(dx, dy, y, inv []float32, cols int, acc bool) {
	checkLen("NormRowsGrad", len(dx), len(inv)*cols)
	checkLen("NormRowsGrad", len(dy), len(dx))
	checkLen("NormRowsGrad", len(y), len(dx))
	n := float64(max(cols, 1))
	run, by := normGradRow, n
	if bits.OnesCount(uint(cols)) == 1 { // multiplying by 1/n then gives the same bits as dividing by n
		run, by = normGradRowTimes, 1/n
	}
	eachNormRows(len(inv), cols, func(base, from, to, head int) {
		gs, ys := dy[base*cols:to*cols], y[base*cols:to*cols]
		var sum, dot [normRows]float64
		if head > 0 && !normDots(&sum[0], &dot[0], &gs[0], &ys[0], 4*cols, head) {
			head = 0
		}
		for i := from - base; i < to-base; i++ {
			g, v, d := gs[i*cols:(i+1)*cols], ys[i*cols:(i+1)*cols], dx[(base+i)*cols:(base+i+1)*cols]
			for k := head; k < cols; k++ {
				sum[i] += float64(g[k])
				dot[i] += float64(float64(g[k]) * float64(v[k]))
			}
			scale, mean, done := float64(inv[base+i]), sum[i]/n, 0
			if whole := cols &^ 7; whole > 0 && run(&d[0], &g[0], &v[0], whole, scale, mean, dot[i], by, asInt(acc)) {
				done = whole
			}
			for k := done; k < cols; k++ {
				e := float32(scale * (float64(g[k]) - mean - float64(float64(v[k])*dot[i])/n))
				if acc {
					e += d[k]
				}
				d[k] = e
			}
		}
	})
}
