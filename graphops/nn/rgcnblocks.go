package nn

import "github.com/graphnb/graphnb/internal/parallel"

// blocks multiplies the rows x [pairs, in] of each relation by its block-diagonal matrix in w [relations·in,
// out/Blocks]; starts has the first row of each relation. A chunk of the gradient of w is that of one relation,
// summed in the order of the rows.
//
// Cost: 2·pairs·in·out/Blocks flops, and twice as many for the gradients.
func (c *RGCNConv) blocks(f *Fwd, starts []int, x, w *Tensor) *Tensor {
	in, k, out := x.Cols(), c.Blocks, c.Weight.Cols*c.Blocks
	i, o := in/k, c.Weight.Cols
	xs, ws, threads := x.Data(), w.Data(), f.Config().Threads
	relation := make([]int32, x.Rows())
	for r := range c.Relations {
		for p := starts[r]; p < starts[r+1]; p++ {
			relation[p] = int32(r)
		}
	}
	grain := 1 + (1<<14)/max(in*o, 1)
	return f.Custom("RGCNConv's blocks", []*Tensor{x, w}, x.Rows(), out, func(y []float32) {
		parallel.For(threads, len(relation), grain, func(lo, hi int) {
			for p := lo; p < hi; p++ {
				row, m, y := xs[p*in:][:in], ws[int(relation[p])*in*o:][:in*o], y[p*out:][:out]
				for a, v := range row {
					weights, into := m[a*o:][:o], y[a/i*o:][:o]
					for j, u := range weights {
						into[j] += v * u
					}
				}
			}
		})
	}, func(dy []float32, d [][]float32) {
		if d[0] != nil {
			parallel.For(threads, len(relation), grain, func(lo, hi int) {
				for p := lo; p < hi; p++ {
					m, dx, dy := ws[int(relation[p])*in*o:][:in*o], d[0][p*in:][:in], dy[p*out:][:out]
					for a := range dx {
						weights, from := m[a*o:][:o], dy[a/i*o:][:o]
						sum := float32(0)
						for j, u := range weights {
							sum += u * from[j]
						}
						dx[a] = sum
					}
				}
			})
		}
		if d[1] == nil {
			return
		}
		parallel.For(threads, c.Relations, 1, func(lo, hi int) {
			for r := lo; r < hi; r++ {
				dw := d[1][r*in*o:][:in*o]
				for p := starts[r]; p < starts[r+1]; p++ {
					row, dy := xs[p*in:][:in], dy[p*out:][:out]
					for a, v := range row {
						weights, from := dw[a*o:][:o], dy[a/i*o:][:o]
						for j, g := range from {
							weights[j] += v * g
						}
					}
				}
			}
		})
	})
}
