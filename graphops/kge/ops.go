package kge

import (
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// grain is the number of rows of a chunk, for rows of that cost.
func grain(cols int) int { return 1 + (1<<14)/max(cols, 1) }

// complexMul is a·b, or a·conj(b), for rows [n,2k] whose first k columns are real parts and whose others
// are imaginary parts.
func complexMul(f *nn.Fwd, a, b *nn.Tensor, conj bool) *nn.Tensor {
	const op = "kge: complex product"
	if a.Rows() != b.Rows() || a.Cols() != b.Cols() || a.Cols()%2 != 0 {
		fail(op, "it multiplies [%d,%d] by [%d,%d]; both have the same rows, of real and then as many imaginary parts", a.Rows(), a.Cols(), b.Rows(), b.Cols())
	}
	n, c, k := a.Rows(), a.Cols(), a.Cols()/2
	sign := float32(1)
	if conj {
		sign = -1
	}
	x, y, threads := a.Data(), b.Data(), f.Config().Threads
	return f.Custom(op, []*nn.Tensor{a, b}, n, c, func(out []float32) {
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				x, y, out := x[i*c:][:c], y[i*c:][:c], out[i*c:][:c]
				for j := range k {
					im := sign * y[k+j]
					out[j] = x[j]*y[j] - x[k+j]*im
					out[k+j] = x[j]*im + x[k+j]*y[j]
				}
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		// The gradient of a is dOut·conj(b), and that of b is conj(a)·dOut, conjugated once more if
		// the product is by conj(b).
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				d, x, y := dOut[i*c:][:c], x[i*c:][:c], y[i*c:][:c]
				for j := range k {
					if dIn[0] != nil {
						im := sign * y[k+j]
						dIn[0][i*c+j] = d[j]*y[j] + d[k+j]*im
						dIn[0][i*c+k+j] = d[k+j]*y[j] - d[j]*im
					}
					if dIn[1] != nil {
						dIn[1][i*c+j] = d[j]*x[j] + d[k+j]*x[k+j]
						dIn[1][i*c+k+j] = sign * (d[k+j]*x[j] - d[j]*x[k+j])
					}
				}
			}
		})
	}).SetSpace(a.Space())
}

// unit is e^{iθ} for angles [n,k], as [n,2k]: cosines, then sines.
func unit(f *nn.Fwd, angles *nn.Tensor) *nn.Tensor {
	n, k := angles.Rows(), angles.Cols()
	x, threads := angles.Data(), f.Config().Threads
	var y *nn.Tensor
	y = f.Custom("kge: rotation", []*nn.Tensor{angles}, n, 2*k, func(out []float32) {
		parallel.For(threads, n, grain(16*k), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				for j := range k {
					s, c := math.Sincos(float64(x[i*k+j]))
					out[2*i*k+j], out[(2*i+1)*k+j] = float32(c), float32(s)
				}
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		at := y.Data()
		parallel.For(threads, n, grain(k), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				for j := range k {
					re, im := 2*i*k+j, (2*i+1)*k+j
					dIn[0][i*k+j] = dOut[im]*at[re] - dOut[re]*at[im]
				}
			}
		})
	})
	return y
}

// minNorm is the smallest norm that normalize divides by, as torch.nn.functional.normalize.
const minNorm = 1e-12

// normalize divides each row by its norm, 1 or 2.
func normalize(f *nn.Fwd, x *nn.Tensor, norm int) *nn.Tensor {
	if norm == 2 {
		return f.L2Normalize(x)
	}
	n, c := x.Rows(), x.Cols()
	in, threads := x.Data(), f.Config().Threads
	norms := make([]float32, n)
	var out *nn.Tensor
	out = f.Custom("kge: L1 normalisation", []*nn.Tensor{x}, n, c, func(out []float32) {
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				sum := 0.0
				for _, v := range in[i*c:][:c] {
					sum += math.Abs(float64(v))
				}
				norms[i] = float32(max(sum, minNorm))
				for j, v := range in[i*c:][:c] {
					out[i*c+j] = v / norms[i]
				}
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		rows := out.Data()
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				d, y := dOut[i*c:][:c], rows[i*c:][:c]
				along := float32(0)
				if norms[i] > minNorm { // a shorter row is divided by a constant
					along = simd.Dot(d, y)
				}
				for j := range d {
					dIn[0][i*c+j] = (d[j] - sign(y[j])*along) / norms[i]
				}
			}
		})
	})
	return out.SetSpace(x.Space())
}

func sign(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// distance is ‖x - y‖ in the norm 1 or 2.
func distance(x, y []float32, norm int) float32 {
	sum := float32(0)
	if norm == 1 {
		for j, v := range x {
			sum += float32(math.Abs(float64(v - y[j])))
		}
		return sum
	}
	for j, v := range x {
		d := v - y[j]
		sum += d * d
	}
	return float32(math.Sqrt(float64(sum)))
}

// addSlope adds s times the gradient of -‖x - y‖ by x to dx and subtracts it from dy; either can be nil.
// The gradient at distance 0 is 0.
func addSlope(dx, dy, x, y []float32, s, dist float32, norm int) {
	if s == 0 || dist == 0 {
		return
	}
	for j, v := range x {
		g := v - y[j]
		if norm == 1 {
			g = sign(g)
		} else {
			g /= dist
		}
		g *= s
		if dx != nil {
			dx[j] -= g
		}
		if dy != nil {
			dy[j] += g
		}
	}
}

// negDistance is -‖x_i - y_i‖ of rows [n,c], as [n,1].
func negDistance(f *nn.Fwd, x, y *nn.Tensor, norm int) *nn.Tensor {
	const op = "kge: distance"
	if x.Rows() != y.Rows() || x.Cols() != y.Cols() {
		fail(op, "the rows are [%d,%d] and [%d,%d]", x.Rows(), x.Cols(), y.Rows(), y.Cols())
	}
	n, c := x.Rows(), x.Cols()
	a, b, threads := x.Data(), y.Data(), f.Config().Threads
	var out *nn.Tensor
	out = f.Custom(op, []*nn.Tensor{x, y}, n, 1, func(out []float32) {
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out[i] = -distance(a[i*c:][:c], b[i*c:][:c], norm)
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		dist := out.Data()
		parallel.For(threads, n, grain(c), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				addSlope(row(dIn[0], i, c), row(dIn[1], i, c), a[i*c:][:c], b[i*c:][:c], dOut[i], -dist[i], norm)
			}
		})
	})
	return out.SetSpace(x.Space())
}

// negDistances is -‖x_i - y_j‖ of all rows x [n,c] and y [m,c], as [n,m]. It takes n·m·c steps and no
// memory besides; the difference is taken before it is squared, so near rows keep their order.
func negDistances(f *nn.Fwd, x, y *nn.Tensor, norm int) *nn.Tensor {
	const op = "kge: distances"
	if x.Cols() != y.Cols() {
		fail(op, "the rows are [%d,%d] and [%d,%d]", x.Rows(), x.Cols(), y.Rows(), y.Cols())
	}
	n, m, c := x.Rows(), y.Rows(), x.Cols()
	a, b, threads := x.Data(), y.Data(), f.Config().Threads
	var out *nn.Tensor
	out = f.Custom(op, []*nn.Tensor{x, y}, n, m, func(out []float32) {
		parallel.For(threads, n*m, grain(c), func(lo, hi int) {
			for k := lo; k < hi; k++ {
				out[k] = -distance(a[k/m*c:][:c], b[k%m*c:][:c], norm)
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		// Each gradient row is added up by one thread, in the order of the other rows.
		dist := out.Data()
		if dIn[0] != nil {
			parallel.For(threads, n, grain(c*m), func(lo, hi int) {
				for i := lo; i < hi; i++ {
					for j := range m {
						addSlope(dIn[0][i*c:][:c], nil, a[i*c:][:c], b[j*c:][:c], dOut[i*m+j], -dist[i*m+j], norm)
					}
				}
			})
		}
		if dIn[1] != nil {
			parallel.For(threads, m, grain(c*n), func(lo, hi int) {
				for j := lo; j < hi; j++ {
					for i := range n {
						addSlope(nil, dIn[1][j*c:][:c], a[i*c:][:c], b[j*c:][:c], dOut[i*m+j], -dist[i*m+j], norm)
					}
				}
			})
		}
	})
	return out
}

// row is row i of a matrix of c columns, nil if there is no matrix.
func row(m []float32, i, c int) []float32 {
	if m == nil {
		return nil
	}
	return m[i*c:][:c]
}
