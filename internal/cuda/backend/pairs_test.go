//go:build cuda && linux && cgo

package backend

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// The decoders and losses of link prediction have the CPU's losses and gradients on the device.
func TestPairs(t *testing.T) {
	const nodes, dim, perEdge = 9, 5, 2
	h := make([]float32, nodes*dim)
	for i := range h {
		h[i] = float32(math.Sin(float64(3 * i)))
	}
	src, dst := []int32{0, 0, 0, 7, 7, 7, 2, 2, 2}, []int32{1, 4, 8, 8, 0, 7, 3, 3, 5}
	losses := map[string]func(*nn.Tensor) *nn.Loss{
		"binary":     func(s *nn.Tensor) *nn.Loss { return pairs.BCE(s, perEdge) },
		"softmax":    func(s *nn.Tensor) *nn.Loss { return pairs.Softmax(s, perEdge) },
		"max-margin": func(s *nn.Tensor) *nn.Loss { return pairs.MaxMargin(s, perEdge, 1) },
	}
	g, err := graphops.FromEdges(nodes, []int32{0, 0, 1, 1, 2, 3, 4, 7, 8, 8}, []int32{4, 5, 4, 8, 3, 5, 8, 0, 3, 7}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	be := open(t, fakegpu.Config{Schedule: fakegpu.Random, Seed: 3})
	for _, name := range []string{"dot", "bilinear", "mlp", "hadamard", "structural"} {
		for loss, of := range losses {
			var sums [2]float64
			var grads [2][]float32
			for i, c := range []nn.Config{{Train: true}, {Train: true, Backend: be}} {
				d, err := pairs.NewDecoder(name, dim, 4)
				if err != nil {
					t.Fatal(err)
				}
				if name != "dot" {
					p, err := nn.Collect(&struct{ D pairs.Decoder }{d})
					if err != nil {
						t.Fatal(err)
					}
					p.Init(1)
				}
				f := nn.NewFwd(c)
				x := f.Leaf(nodes, dim, h, nil)
				l := of(pairs.ScoreIn(d, f, g, pairs.Edges{Src: src, Dst: dst}, x, src, dst))
				sums[i] = l.Mean()
				l.Backward()
				grads[i] = append(grads[i], x.Grad()...)
				f.Close()
			}
			// Sums of at most 9 products of numbers near 1, in another order.
			if math.Abs(sums[0]-sums[1]) > 1e-5 {
				t.Errorf("%s, %s: loss %v on the CPU and %v on the device", name, loss, sums[0], sums[1])
			}
			for i := range grads[0] {
				if math.Abs(float64(grads[0][i]-grads[1][i])) > 1e-5 {
					t.Errorf("%s, %s: gradient %d is %v on the CPU and %v on the device", name, loss, i, grads[0][i], grads[1][i])
					break
				}
			}
		}
	}
}
