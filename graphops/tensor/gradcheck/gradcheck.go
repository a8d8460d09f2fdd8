// Package gradcheck compares the gradients that package tensor computes with
// numerical ones: for tests of layers and of operations made with Fwd.Custom.
//
//	func TestMyLayer(t *testing.T) {
//		l := NewMyLayer(4, 3)
//		gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
//			return l.Forward(f, block, x[0])
//		}, gradcheck.Random(block.NumSrc, 4, 1), gradcheck.Param(l.Weight))
//	}
//
// The output's elements are reduced to one number with fixed random weights w,
// L = Σ wᵢ·outᵢ in float64, and dL/dx is compared with (L(x+h) - L(x-h)) / 2h
// for each element x of each input. The function runs in float32, so h cannot be
// tiny: it starts at 2⁻⁵ (relative to |x| above 1), where rounding is some 10⁻⁵
// of the output, and two steps are combined to cancel the error in h² (Richardson
// extrapolation). Where estimates at neighbouring steps disagree, as next to the
// kink of a ReLU, h is halved until they agree.
package gradcheck

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/graphnb/graphnb/graphops/tensor"
)

// TB is the part of testing.TB that reports.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Func is what is differentiated: it computes a tensor of any shape from x, the
// inputs that are not parameters, in order. It must be a function of its inputs
// alone (dropout is, within one step).
type Func func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor

// Input is a matrix to differentiate by: made by Data, Random or Param.
type Input struct {
	rows, cols int
	data       []float32
	space      *tensor.Space
	param      *tensor.Param
}

// Data is an input with the given elements [rows·cols].
func Data(rows, cols int, data []float32) Input { return Input{rows: rows, cols: cols, data: data} }

// Random is an input with normally distributed elements.
func Random(rows, cols int, seed uint64) Input {
	r := rand.New(rand.NewPCG(seed, uint64(rows)<<32|uint64(cols)))
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return Data(rows, cols, data)
}

// In says whose rows the input's are, for functions with dropout.
func (in Input) In(sp *tensor.Space) Input {
	in.space = sp
	return in
}

// Param makes a parameter an input: it is not in x, because the function uses
// it by Fwd.Param. Its W is varied and restored, its G replaced and restored.
func Param(p *tensor.Param) Input {
	return Input{rows: p.Rows, cols: p.Cols, data: p.W, param: p}
}

// Checker holds what Check may be told. The zero value is good for functions
// whose inputs, outputs and derivatives are about 1.
type Checker struct {
	Config tensor.Config // of the passes; gradients are always recorded
	Abs    float64       // tolerance |analytic - numeric| <= Abs + Rel·|numeric|; 0: 1e-3
	Rel    float64       // 0: 1e-2
	Max    int           // elements tried per input, spread evenly; 0: 200
}

// Check is Checker{}.Check.
func Check(tb TB, fn Func, inputs ...Input) {
	tb.Helper()
	Checker{}.Check(tb, fn, inputs...)
}

// Check reports each input whose gradient is wrong, with its worst element.
func (c Checker) Check(tb TB, fn Func, inputs ...Input) {
	tb.Helper()
	if c.Abs == 0 {
		c.Abs = 1e-3
	}
	if c.Rel == 0 {
		c.Rel = 1e-2
	}
	if c.Max == 0 {
		c.Max = 200
	}
	inputs = slices.Clone(inputs)
	run := &run{cfg: c.Config, fn: fn, inputs: inputs, f: tensor.NewFwd(c.Config)}
	for i := range inputs {
		// Varied in copies, so that the caller's slices stay as they are.
		if inputs[i].param == nil {
			inputs[i].data = slices.Clone(inputs[i].data)
		}
	}
	grads, err := run.gradients()
	if err != nil {
		tb.Fatalf("gradcheck: %v", err)
		return
	}
	for i, in := range inputs {
		if msg := c.compare(run, in, grads[i]); msg != "" {
			tb.Errorf("gradcheck: the gradient of %s is wrong: %s", in.name(i), msg)
		}
	}
}

func (in Input) name(i int) string {
	if in.param != nil {
		return fmt.Sprintf("parameter %q", in.param.Name)
	}
	return fmt.Sprintf("input %d", i)
}

// compare returns "" or what is wrong with the worst element.
func (c Checker) compare(r *run, in Input, grad []float32) string {
	worst, msg, bad, tried := 0.0, "", 0, 0
	step := max(1, len(in.data)/c.Max)
	for i := 0; i < len(in.data); i += step {
		num := r.derivative(in, i, c.Abs, c.Rel)
		diff := math.Abs(float64(grad[i]) - num)
		tried++
		if limit := c.Abs + c.Rel*math.Abs(num); !(diff <= limit) {
			bad++
			if !(diff/limit <= worst) || msg == "" {
				worst = diff / limit
				msg = fmt.Sprintf("at [%d,%d] it is %g, but the numerical one is %g", i/in.cols, i%in.cols, grad[i], num)
			}
		}
	}
	if bad == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%d of the %d elements tried are off)", msg, bad, tried)
}

type run struct {
	cfg     tensor.Config
	fn      Func
	inputs  []Input
	f       *tensor.Fwd
	weights []float32 // of the output's elements
}

func (r *run) forward(record bool) (out *tensor.Tensor, xs []*tensor.Tensor) {
	cfg := r.cfg
	cfg.Grad = record
	r.f.Reset(cfg)
	for _, in := range r.inputs {
		if in.param == nil {
			xs = append(xs, r.f.Leaf(in.rows, in.cols, in.data, in.space))
		}
	}
	return r.fn(r.f, slices.Clone(xs)), xs
}

// gradients runs forward and backward and returns a copy of each input's gradient.
func (r *run) gradients() ([][]float32, error) {
	for _, in := range r.inputs {
		if p := in.param; p != nil {
			old := p.G
			p.G = make([]float32, len(p.W))
			defer func() { p.G = old }()
		}
	}
	out, xs := r.forward(true)
	rng := rand.New(rand.NewPCG(7, uint64(out.Rows()*out.Cols())))
	r.weights = make([]float32, out.Rows()*out.Cols())
	for i := range r.weights {
		r.weights[i] = float32(rng.NormFloat64())
	}
	w := r.f.Input(out.Rows(), out.Cols(), r.weights, nil)
	if err := r.f.SumAll(r.f.Mul(out, w)).Backward(); err != nil {
		return nil, err
	}
	grads := make([][]float32, len(r.inputs))
	x := 0
	for i, in := range r.inputs {
		if in.param != nil {
			grads[i] = in.param.G
			continue
		}
		grads[i] = slices.Clone(xs[x].Grad())
		x++
	}
	return grads, nil
}

// loss is Σ w·out with element i of in set to v.
func (r *run) loss(in Input, i int, v float32) float64 {
	old := in.data[i]
	in.data[i] = v
	defer func() { in.data[i] = old }() // after the elements were computed
	out, _ := r.forward(false)
	sum := 0.0
	for j, o := range out.Data() {
		sum += float64(o) * float64(r.weights[j])
	}
	return sum
}

// derivative is dL/dx at element i of in. It halves h until the estimate changes
// by less than a quarter of the tolerance, and else returns the one that changed
// least.
func (r *run) derivative(in Input, i int, abs, rel float64) float64 {
	x := in.data[i]
	central := func(h float32) float64 {
		// What float32 makes of x±h is what was really varied.
		up, down := x+h, x-h
		return (r.loss(in, i, up) - r.loss(in, i, down)) / (float64(up) - float64(down))
	}
	h := float32(1.0 / 32)
	if a := float32(math.Abs(float64(x))); a > 1 {
		h *= a
	}
	best, least := 0.0, math.Inf(1)
	last := central(h)
	for range 8 {
		h /= 2
		d := central(h)
		change := math.Abs(d - last)
		estimate := d + (d-last)/3
		if change <= (abs+rel*math.Abs(d))/4 {
			return estimate
		}
		if change < least {
			best, least = d, change
		}
		last = d
	}
	return best
}
