package backendtest

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// counting is a device that counts the buffers it holds and that keeps some host memory on the
// device.
type counting struct {
	device
	held map[any]bool
	kept map[*float32]ops.Buffer
}

func (c *counting) Alloc(n int) ops.Buffer {
	b := c.device.Alloc(n)
	c.held[b.Dev] = true
	return b
}

func (c *counting) Wrap(h []float32) ops.Buffer {
	if b, ok := c.Kept(h); ok {
		return b
	}
	b := c.Alloc(len(h))
	c.Upload(b, h)
	return b
}

func (c *counting) Free(b ops.Buffer) {
	for _, k := range c.kept {
		if k.Dev == b.Dev {
			return
		}
	}
	if !c.held[b.Dev] {
		panic("a buffer that is not held is freed")
	}
	delete(c.held, b.Dev)
}

func (c *counting) Kept(h []float32) (ops.Buffer, bool) {
	if len(h) == 0 {
		return ops.Buffer{}, false
	}
	b, ok := c.kept[&h[0]]
	return b, ok
}

func (c *counting) Hold([]float32) (func(), error) { panic("nothing holds") }
func (c *counting) Room([]float32) (func(), bool)  { panic("nothing has room") }

var _ ops.Keeper = (*counting)(nil)

// Copies that a pass makes on a device are freed at its end; weights and gradients that the device
// keeps are used in place.
func TestCopies(t *testing.T) {
	be := &counting{device: device{ops.CPU(1)}, held: map[any]bool{}, kept: map[*float32]ops.Buffer{}}
	w := &tensor.Param{Name: "w", Rows: 2, Cols: 1, W: []float32{5, 6}, G: make([]float32, 2)}
	onDevice := be.device.Wrap([]float32{1, 2})
	gradient := be.device.Wrap([]float32{10, 20})
	var f *tensor.Fwd
	pass := func() {
		c := tensor.Config{Backend: be, Grad: true}
		if f == nil {
			f = tensor.NewFwd(c)
		} else {
			f.Reset(c)
		}
		y := f.SumAll(f.MatMul(f.Input(1, 2, []float32{3, 4}, nil), f.Param(w)))
		if err := y.Backward(); err != nil {
			t.Fatal(err)
		}
		out := make([]float32, 1)
		y.CopyTo(out)
		if want := 3*w.W[0] + 4*w.W[1]; len(be.kept) == 0 && out[0] != want {
			t.Errorf("the result is %g, want %g", out[0], want)
		}
		if len(be.kept) > 0 && out[0] != 11 {
			t.Errorf("the result is %g, want 11, by the weights on the device", out[0])
		}
	}
	pass()
	if w.G[0] != 3 || w.G[1] != 4 {
		t.Errorf("the gradient is %v", w.G)
	}
	before := len(be.held)
	for range 3 {
		pass()
	}
	if len(be.held) > before {
		t.Errorf("%d buffers are held after four passes, %d after one", len(be.held), before)
	}
	be.kept[&w.W[0]], be.kept[&w.G[0]] = onDevice, gradient
	pass()
	if w.G[0] != 12 {
		t.Errorf("the gradient in host memory is %v, want the one from four passes before", w.G)
	}
	if g := *gradient.Dev.(*[]float32); g[0] != 13 || g[1] != 24 {
		t.Errorf("the gradient on the device is %v, want 13 and 24", g)
	}
	f.Close()
	if len(be.held) > 0 {
		t.Errorf("%d buffers are held after Close", len(be.held))
	}
}
