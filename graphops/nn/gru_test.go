package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
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

// Inputs in parts give the states and gradients of the joined ones, and in one pass those of the operations that a GPU computes.
func TestGRUCellParts(t *testing.T) {
	t.Parallel()
	const rows, in, hidden = 300, 12, 7
	c := NewGRUCell(in, hidden)
	p := mustCollect(t, c)
	p.Init(2)
	x, h, scale := expect.Normal(rows*in, 1), expect.Normal(rows*hidden, 2), expect.Normal(rows*hidden, 3)
	run := func(cfg Config, parts bool) (y, grad []float32) {
		cfg.Grad = true
		f := NewFwd(cfg)
		all, state := f.Leaf(rows, in, x, nil), f.Leaf(rows, hidden, h, nil)
		xs := []*Tensor{all}
		if parts {
			xs = []*Tensor{f.Cols(all, 0, 5), f.Cols(all, 5, 6), f.Cols(all, 6, in)}
		}
		p.ZeroGrad()
		out := c.ForwardParts(f, xs, state)
		if err := f.SumAll(f.Mul(out, f.Input(rows, hidden, scale, nil))).Backward(); err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), out.Data()...), append(append(append([]float32(nil), p.Grad()...), all.Grad()...), state.Grad()...)
	}
	y, grad := run(Config{Threads: 1}, false)
	for name, cfg := range map[string]Config{"in steps": {Backend: renamed{ops.CPU(1)}}, "in parts": {Threads: 1}} {
		gotY, gotGrad := run(cfg, name == "in parts")
		expect.Near(t, name, gotY, floats64(y), 1e-6, 1e-6)
		expect.Near(t, name+": gradients", gotGrad, floats64(grad), 1e-4, 1e-4) // sums over 300 rows
	}
	for _, threads := range []int{2, 5} {
		gotY, gotGrad := run(Config{Threads: threads}, false)
		expect.SameBits(t, "states", y, gotY)
		expect.SameBits(t, "gradients", grad, gotGrad)
	}
	f := NewFwd(Config{})
	if err := Try(func() { c.Forward(f, f.Input(2, 11, x[:22], nil), nil) }); err == nil || !strings.Contains(err.Error(), "11 columns, and the layer was made for 12") {
		t.Errorf("with a column too few: %v", err)
	}
}

// renamed is a backend that is not known to be the CPU.
type renamed struct{ ops.Backend }

func (renamed) Name() string { return "another" }
