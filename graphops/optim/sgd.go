package optim

import (
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// SGDOptions are the options of SGD. A field that is 0 means the default.
type SGDOptions struct {
	LR          float64 // 0 means 0.001, PyTorch's default, and [None] 0
	Momentum    float64 // 0 means none
	Nesterov    bool    // needs Momentum
	WeightDecay float64 // 0 means none
}

var _ DeviceOptimizer = (*SGD)(nil)

// SGD is stochastic gradient descent
//
//	g ← scale·g + λ·w                     (λ = WeightDecay)
//	b ← μ·b + g, at the first step b ← g  (μ = Momentum)
//	w ← w - lr·b, with Nesterov w ← w - lr·(g + μ·b), without momentum w - lr·g
//
// in float32, as torch.optim.SGD without dampening. State: momentum_buffer (b) if Momentum is set.
//
// Source: I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of
// initialization and momentum in deep learning", ICML 2013, as PyTorch restates
// it.
type SGD struct {
	o     SGDOptions
	steps int64
	b     []float32
}

// NewSGD returns an SGD. It panics with a [*tensor.Error] for an invalid option.
func NewSGD(o SGDOptions) *SGD {
	o.LR = orDefault(o.LR, 1e-3)
	checkOption("NewSGD", "LR", o.LR, notNegative)
	checkOption("NewSGD", "Momentum", o.Momentum, notNegative)
	checkOption("NewSGD", "WeightDecay", o.WeightDecay, notNegative)
	if o.Nesterov && o.Momentum == 0 {
		fail("NewSGD", "Nesterov is set without a Momentum")
	}
	return &SGD{o: o}
}

// Name is "sgd".
func (s *SGD) Name() string { return "sgd" }

// Steps implements [Optimizer].
func (s *SGD) Steps() int64 { return s.steps }

// LR implements [Optimizer].
func (s *SGD) LR() float64 { return s.o.LR }

// SetLR implements [Optimizer].
func (s *SGD) SetLR(lr float64) {
	checkOption("SetLR", "LR", lr, notNegative)
	s.o.LR = lr
}

// State implements [Optimizer].
func (s *SGD) State() []State {
	if s.o.Momentum == 0 {
		return nil
	}
	return []State{{"momentum_buffer", s.b}}
}

// SetState implements [Optimizer].
func (s *SGD) SetState(steps int64, state map[string][]float32) error {
	var names []string
	for _, b := range s.State() {
		names = append(names, b.Name)
	}
	if err := restore(s.Name(), steps, state, names, &s.b); err != nil {
		return err
	}
	s.steps = steps
	return nil
}

// Step implements [Optimizer].
func (s *SGD) Step(w, g []float32, scale float32) {
	s.checkBuffers(w, g)
	n := s.next(scale)
	parallel.For(0, len(w), stepGrain, func(lo, hi int) { s.update(w, g, lo, hi, n) })
}

func (s *SGD) checkBuffers(w, g []float32) {
	if s.o.Momentum == 0 {
		checkStep(s.Name(), w, g)
	} else {
		checkStep(s.Name(), w, g, &s.b)
	}
}

// update steps the elements [lo, hi).
func (s *SGD) update(w, g []float32, lo, hi int, n SGDStep) {
	if n.Momentum == 0 {
		simd.SGD(w[lo:hi], g[lo:hi], n.LR, n.Scale, n.Decay)
		return
	}
	// At the first step b is 0, and μ·0 + g is g.
	simd.Momentum(w[lo:hi], s.b[lo:hi], g[lo:hi], n.LR, n.Scale, n.Decay, n.Momentum, n.Nesterov)
}

// StepOn implements [DeviceOptimizer].
func (s *SGD) StepOn(d Stepper, scale float32) { d.SGD(s.next(scale)) }

// next returns the coefficients of the next step.
func (s *SGD) next(scale float32) SGDStep {
	s.steps++
	return s.coefficients(scale, s.o.LR, s.o.WeightDecay)
}

func (s *SGD) coefficients(scale float32, lr, decay float64) SGDStep {
	return SGDStep{Scale: scale, LR: float32(lr), Decay: float32(decay), Momentum: float32(s.o.Momentum), Nesterov: s.o.Nesterov}
}
