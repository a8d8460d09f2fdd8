package nn

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// The gradients of a cell that is used three times, from no state on, are right.
func TestGRUCellOverTime(t *testing.T) {
	t.Parallel()
	c := NewGRUCell(3, 4)
	gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor {
		var h *Tensor
		for range 3 {
			h = c.Forward(f, x[0], h)
		}
		return h
	}, inputsOf(t, c, 5, 3)...)
}

// No state is a state of zeros.
func TestGRUCellFromZeros(t *testing.T) {
	t.Parallel()
	c := NewGRUCell(3, 4)
	mustCollect(t, c).Init(2)
	f := NewFwd(Config{})
	x := f.Input(6, 3, expect.Normal(18, 1), nil)
	zeros := c.Forward(f, x, f.Input(6, 4, make([]float32, 24), nil)).Data()
	expect.Near(t, "states", c.Forward(f, x, nil).Data(), floats64(zeros), 1e-6, 0)
}
