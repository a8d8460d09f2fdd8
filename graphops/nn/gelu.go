package nn

import (
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// GELU is x·Φ(x), elementwise, with the distribution function Φ of the normal distribution, as PyTorch's default.
// The rows keep their space. It is computed on the host, also if the pass is on a device.
//
// Φ is that of [simd.Normal], within 4e-7 of its value, relative to it.
//
// Source: D. Hendrycks, K. Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415.
func GELU(f *Fwd, x *Tensor) *Tensor {
	const grain = 1 << 12
	threads := f.Config().Threads
	y := f.CustomSet("GELU", []*Tensor{x}, x.Rows(), x.Cols(), func(out []float32) {
		in := x.Data()
		parallel.For(threads, len(out), grain, func(lo, hi int) {
			eachNormal(in[lo:hi], func(at int, x, cdf, _ []float32) {
				simd.Times(out[lo+at:][:len(x)], x, cdf, false)
			})
		})
	}, func(dOut []float32, dIn [][]float32) {
		if dIn[0] == nil {
			return
		}
		in := x.Data()
		parallel.For(threads, len(dOut), grain, func(lo, hi int) {
			eachNormal(in[lo:hi], func(at int, x, cdf, density []float32) {
				simd.Times(density, density, x, false)
				simd.Add(density, cdf)
				simd.Times(dIn[0][lo+at:][:len(x)], dOut[lo+at:][:len(x)], density, false)
			})
		})
	})
	return y.SetSpace(x.Space())
}

// eachNormal calls do with the distribution function and the density of the normal distribution for parts of x.
// do may write to both.
func eachNormal(x []float32, do func(at int, x, cdf, density []float32)) {
	var d, c [256]float32
	for lo := 0; lo < len(x); lo += len(d) {
		part := x[lo:min(lo+len(d), len(x))]
		cdf, density := c[:len(part)], d[:len(part)]
		simd.Normal(cdf, density, part)
		do(lo, part, cdf, density)
	}
}
