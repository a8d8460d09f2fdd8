package optim

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// AdamOptions are the options of Adam. A field that is 0 means PyTorch's default.
type AdamOptions struct {
	LR    float64 // 0 means 0.001, and [None] 0
	Beta1 float64 // decay of the gradient's mean; 0 means 0.9, and [None] 0
	Beta2 float64 // decay of its square's mean; 0 means 0.999, and [None] 0
	Eps   float64 // 0 means 1e-8
	// WeightDecay times the weight is added to the gradient (L2 penalty, Adam) or, with Decoupled,
	// subtracted from the weight itself (AdamW). 0 means none; in [NewAdamW] it means 0.01, and
	// [None] means none.
	WeightDecay float64
	Decoupled   bool
}

var _ DeviceOptimizer = (*Adam)(nil)

// Adam is the optimiser
//
//	g ← scale·g + λ·w                     (λ = WeightDecay, not Decoupled)
//	w ← w - lr·λ·w                        (Decoupled)
//	m ← β1·m + (1-β1)·g
//	v ← β2·v + (1-β2)·g²
//	w ← w - lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + ε)
//
// in float32, as torch.optim.Adam and AdamW without amsgrad. State: exp_avg (m)
// and exp_avg_sq (v).
//
// Source: D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization",
// ICLR 2015, arXiv:1412.6980, algorithm 1; I. Loshchilov, F. Hutter, "Decoupled
// weight decay regularization", ICLR 2019, arXiv:1711.05101, algorithm 2.
type Adam struct {
	o     AdamOptions
	steps int64
	m, v  []float32
}

var adamState = []string{"exp_avg", "exp_avg_sq"}

// NewAdam returns an Adam. It panics with a [*tensor.Error] for an invalid option.
func NewAdam(o AdamOptions) *Adam {
	o.LR, o.Beta1, o.Beta2, o.Eps = orDefault(o.LR, 1e-3), orDefault(o.Beta1, 0.9), orDefault(o.Beta2, 0.999), orDefault(o.Eps, 1e-8)
	checkOption("NewAdam", "LR", o.LR, notNegative)
	checkOption("NewAdam", "Beta1", o.Beta1, aFraction)
	checkOption("NewAdam", "Beta2", o.Beta2, aFraction)
	checkOption("NewAdam", "Eps", o.Eps, positive)
	o.WeightDecay = orDefault(o.WeightDecay, 0)
	checkOption("NewAdam", "WeightDecay", o.WeightDecay, notNegative)
	return &Adam{o: o}
}

// NewAdamW returns an Adam with decoupled weight decay, as torch.optim.AdamW; WeightDecay is 0.01
// by default.
func NewAdamW(o AdamOptions) *Adam {
	o.Decoupled = true
	if o.WeightDecay == 0 {
		o.WeightDecay = 0.01
	}
	return NewAdam(o)
}

// Name is "adam" or "adamw".
func (a *Adam) Name() string {
	if a.o.Decoupled {
		return "adamw"
	}
	return "adam"
}

// Steps implements [Optimizer].
func (a *Adam) Steps() int64 { return a.steps }

// LR implements [Optimizer].
func (a *Adam) LR() float64 { return a.o.LR }

// SetLR implements [Optimizer].
func (a *Adam) SetLR(lr float64) {
	checkOption("SetLR", "LR", lr, notNegative)
	a.o.LR = lr
}

// State implements [Optimizer].
func (a *Adam) State() []State { return []State{{adamState[0], a.m}, {adamState[1], a.v}} }

// SetState implements [Optimizer].
func (a *Adam) SetState(steps int64, state map[string][]float32) error {
	if err := restore(a.Name(), steps, state, adamState, &a.m, &a.v); err != nil {
		return err
	}
	a.steps = steps
	return nil
}

// Step implements [Optimizer].
func (a *Adam) Step(w, g []float32, scale float32) {
	checkStep(a.Name(), w, g, &a.m, &a.v)
	step := simd.AdamStep(a.next(scale))
	parallel.For(0, len(w), stepGrain, func(lo, hi int) {
		simd.Adam(w[lo:hi], a.m[lo:hi], a.v[lo:hi], g[lo:hi], &step)
	})
}

// StepOn implements [DeviceOptimizer].
func (a *Adam) StepOn(d Stepper, scale float32) { d.Adam(a.next(scale)) }

// next returns the coefficients of the next step.
func (a *Adam) next(scale float32) AdamStep {
	a.steps++
	return a.coefficients(scale, a.o.LR, a.o.WeightDecay)
}

// coefficients returns those of the current step with a learning rate and a weight decay.
func (a *Adam) coefficients(scale float32, lr, decay float64) AdamStep {
	o, t := a.o, float64(a.steps)
	step := AdamStep{
		Scale: scale,
		Decay: float32(decay),
		B1:    float32(o.Beta1),
		C1:    float32(1 - o.Beta1),
		B2:    float32(o.Beta2),
		C2:    float32(1 - o.Beta2),
		Keep:  1,
		Size:  float32(lr / (1 - math.Pow(o.Beta1, t))),
		Root:  float32(math.Sqrt(1 - math.Pow(o.Beta2, t))),
		Eps:   float32(o.Eps),
	}
	if o.Decoupled {
		step.Decay, step.Keep = 0, float32(1-lr*decay)
	}
	return step
}
