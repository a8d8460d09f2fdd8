package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// Init initialises all parameters from the seed. A layer that is a [Resetter] initialises its own
// parameters; the layers of this package use PyTorch's initialisation of linear layers: U(±1/√in)
// for weights and biases. A parameter that no layer resets is drawn from U(±1/√Cols), or set to 0
// if it is a vector. A Fixed parameter does not change.
//
// Element e of parameter k (counted in the order of the flat buffer) is draw 0 of the Philox
// counter (id e, step 0, C3(Init, 0, k)), on any number of threads.
func (p *Params) Init(seed uint64) {
	for _, e := range p.list[:p.trained] {
		bound := 0.0
		if len(e.shape) > 1 && e.Cols > 0 {
			bound = 1 / math.Sqrt(float64(e.Cols))
		}
		e.uniform(seed, bound)
	}
	for _, r := range p.resets {
		r.Reset(func(q *Param, bound float64) {
			if q == nil {
				return
			}
			e := p.byParam[q]
			if e == nil {
				fail("Init", "%T resets a parameter [%d,%d] that is not part of the model; do not reset a field that is skipped or replaced", r, q.Rows, q.Cols)
			}
			e.uniform(seed, bound)
		})
	}
}

// uniform draws the elements from U(±bound).
func (e *Entry) uniform(seed uint64, bound float64) {
	c3 := philox.C3(philox.Init, 0, e.ordinal)
	b := float32(bound)
	parallel.For(0, len(e.W), 4096, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			u := philox.Block(seed, philox.Counter(int64(i), 0, c3))[0]
			e.W[i] = b * (2*philox.Float32(u) - 1) // the parenthesis is exact: one rounding
		}
	})
}

// glorot returns the bound of the uniform initialisation of X. Glorot and Y. Bengio, "Understanding
// the difficulty of training deep feedforward neural networks", AISTATS 2010: √(6/(in+out)).
func glorot(in, out int) float64 { return math.Sqrt(6 / float64(max(in+out, 1))) }
