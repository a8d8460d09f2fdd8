package events

import (
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
)

// pairScore scores pairs of embeddings: w · relu(A·x + B·y + b) + c.
type pairScore struct {
	Src   *nn.Linear `nn:"lin_src"`
	Dst   *nn.Linear `nn:"lin_dst"`
	Final *nn.Linear `nn:"lin_final"`
}

func newPairScore(width int) *pairScore {
	return &pairScore{nn.NewLinear(width, width, true), nn.NewLinear(width, width, true), nn.NewLinear(width, 1, true)}
}

// forward returns the scores [pairs, 1] of the pairs (from[i], to[i]) of rows of z. No matrix with a row for each pair is
// made: an evaluation has hundreds of thousands.
func (s *pairScore) forward(f *nn.Fwd, z *nn.Tensor, from, to []int32) *nn.Tensor {
	a, b := s.Src.Forward(f, z), s.Dst.Forward(f, z)
	w, c := f.Param(s.Final.Weight), f.Param(s.Final.Bias)
	threads := f.Config().Threads
	return f.Custom("pairs", []*nn.Tensor{a, b, w, c}, len(from), 1, func(out []float32) {
		x, y, w, c, d := a.Data(), b.Data(), w.Data(), c.Data()[0], a.Cols()
		parallel.For(threads, len(from), 256, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				p, q := x[int(from[i])*d:][:d], y[int(to[i])*d:][:d]
				sum := c
				for k, v := range w {
					sum += v * max(0, p[k]+q[k])
				}
				out[i] = sum
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		x, y, w, d := a.Data(), b.Data(), w.Data(), a.Cols()
		for i, of := range []*nn.Tensor{a, b} {
			if dIn[i] == nil {
				dIn[i] = make([]float32, of.Rows()*d)
			}
		}
		for i, g := range dOut {
			p, q := x[int(from[i])*d:][:d], y[int(to[i])*d:][:d]
			dp, dq := dIn[0][int(from[i])*d:][:d], dIn[1][int(to[i])*d:][:d]
			for k, v := range w {
				if h := p[k] + q[k]; h > 0 {
					dp[k] += g * v
					dq[k] += g * v
					dIn[2][k] += g * h
				}
			}
			dIn[3][0] += g
		}
	})
}
