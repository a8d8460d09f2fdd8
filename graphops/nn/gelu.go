package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
)

// GELU is x·Φ(x), elementwise, with the distribution function Φ of the normal distribution, as PyTorch's default.
// The rows keep their space. It is computed on the host, also if the pass is on a device.
//
// Source: D. Hendrycks, K. Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415.
func GELU(f *Fwd, x *Tensor) *Tensor {
	const grain = 1 << 12
	threads := f.Config().Threads
	y := f.Custom("GELU", []*Tensor{x}, x.Rows(), x.Cols(), func(out []float32) {
		in := x.Data()
		parallel.For(threads, len(out), grain, func(lo, hi int) {
			for i, v := range in[lo:hi] {
				out[lo+i] = float32(float64(v) * normalCDF(float64(v)))
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		if dIn[0] == nil {
			return
		}
		in := x.Data()
		parallel.For(threads, len(dOut), grain, func(lo, hi int) {
			for i, v := range in[lo:hi] {
				x := float64(v)
				density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
				dIn[0][lo+i] = float32(float64(dOut[lo+i]) * (normalCDF(x) + x*density))
			}
		})
	})
	return y.SetSpace(x.Space())
}

func normalCDF(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
