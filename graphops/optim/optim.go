// Package optim provides optimisers, which update a model's weights from their gradient, with the
// options and results of torch.optim. They are [Adam] (and AdamW), [SGD], and [SparseAdam] for tables
// of embeddings of which a step touches few rows. [ClipScale] limits the norm of a gradient.
//
//	adam := optim.NewAdam(optim.AdamOptions{LR: 0.003})
//	adam.Step(params.Flat(), params.Grad(), 1/float32(loss.Weight))
//
// An optimiser works on flat buffers, as nn.Params has them, and knows nothing of models. Its steps
// have the same bits on any number of threads. Where a device holds weights and state, it computes
// the steps itself ([DeviceOptimizer], [Stepper]).
//
// Misuse panics with a [*tensor.Error], as in package nn, and nn.Try turns the panic into an error.
package optim

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Optimizer updates weights from their gradient. It works element by element on flat buffers, in
// parallel, with the same bits on any number of threads.
//
// It belongs to one model and one goroutine: its state has the length of the weights of its first
// step.
type Optimizer interface {
	// Name is the name of the algorithm in checkpoints.
	Name() string
	// Step updates w by the gradient scale·g. If g is the gradient of a loss's sum, scale is 1
	// divided by the total weight, times a clipping factor. g is only read.
	Step(w, g []float32, scale float32)
	// Steps is the number of steps so far.
	Steps() int64
	// LR is the learning rate; SetLR changes it from the next step on.
	LR() float64
	SetLR(lr float64)
	// State returns the buffers that a checkpoint must hold in addition to the weights, Steps and
	// LR, always with the same names in the same order; before the first step Data is empty. Data
	// is the optimiser's own memory.
	State() []State
	// SetState restores Steps and State from a checkpoint. It copies.
	SetState(steps int64, state map[string][]float32) error
}

// State is one buffer of an optimiser's state.
type State struct {
	Name string
	Data []float32
}

// DeviceOptimizer is an Optimizer that can compute its steps on a device.
type DeviceOptimizer interface {
	Optimizer
	// StepOn is Step for the weights, gradient and state on the device d. It counts the step and
	// does not change State.
	StepOn(d Stepper, scale float32)
}

// Stepper computes steps on a device that holds weights, gradient and an optimiser's state. It has
// the same results as the optimiser's Step in host memory, to the bit if the device's arithmetic
// allows.
type Stepper interface {
	Adam(AdamStep)
	SGD(SGDStep)
}

// AdamStep holds the coefficients of one step of [Adam], with d = Scale·g + Decay·w:
//
//	m ← B1·m + C1·d
//	v ← B2·v + (C2·d)·d
//	w ← Keep·w - (Size·m) / (√v/Root + Eps)
//
// rounded to float32 after every operation.
type AdamStep struct{ Scale, Decay, B1, C1, B2, C2, Keep, Size, Root, Eps float32 }

// SGDStep holds the coefficients of one step of [SGD], with d = Scale·g + Decay·w: without Momentum
// w ← w - LR·d; with it b ← Momentum·b + d and w ← w - LR·b, or with Nesterov w ← w - LR·(d +
// Momentum·b). It is rounded after every operation.
type SGDStep struct {
	LR, Scale, Decay, Momentum float32
	Nesterov                   bool
}

// stepGrain is the number of elements of a chunk of an optimiser's step.
const stepGrain = 1 << 15

// restore checks a saved state and copies its named buffers to to.
func restore(optimizer string, steps int64, state map[string][]float32, names []string, to ...*[]float32) error {
	n := -1
	for i, name := range names {
		s, ok := state[name]
		switch {
		case !ok:
			return phrase.Errorf("optim", "the state of %s at step %d has no %s; it must hold %q", optimizer, steps, name, names)
		case steps > 0 && len(s) == 0 || steps == 0 && len(s) > 0:
			return phrase.Errorf("optim", "the state of %s at step %d has %d elements in %s", optimizer, steps, len(s), name)
		case i > 0 && len(s) != n:
			return phrase.Errorf("optim", "the state of %s has %d elements in %s but %d in %s; the numbers must be equal", optimizer, len(s), name, n, names[0])
		}
		n = len(s)
	}
	switch {
	case steps < 0:
		return phrase.Errorf("optim", "the state of %s has a negative number of steps, %d", optimizer, steps)
	case len(state) != len(names):
		return phrase.Errorf("optim", "the state of %s must hold %q and nothing else, but has %d buffers", optimizer, names, len(state))
	}
	for i, name := range names {
		*to[i] = append([]float32(nil), state[name]...)
	}
	return nil
}

func checkStep(op string, w, g []float32, state ...*[]float32) {
	if len(w) != len(g) {
		fail(op, "there are %d weights but %d gradients", len(w), len(g))
	}
	for _, s := range state {
		if len(*s) == 0 {
			*s = make([]float32, len(w))
		}
		if len(*s) != len(w) {
			fail(op, "the optimiser's state is for a model with %d weights, but this model has %d", len(*s), len(w))
		}
	}
}

// Ranges of an option.
const (
	notNegative = "0 or more"
	positive    = "above 0"
	aFraction   = "0 or more and below 1"
)

func checkOption(op, name string, v float64, within string) {
	ok := !math.IsNaN(v) && !math.IsInf(v, 0)
	switch within {
	case notNegative:
		ok = ok && v >= 0
	case positive:
		ok = ok && v > 0
	case aFraction:
		ok = ok && v >= 0 && v < 1
	}
	if !ok {
		fail(op, "%s is %v; it must be a number, %s", name, v, within)
	}
}

// None sets an option to zero whose zero value means a default.
const None = -1

// orDefault returns v or its default, and 0 for None.
func orDefault(v, def float64) float64 {
	switch v {
	case 0:
		return def
	case None:
		return 0
	}
	return v
}

// normGrain is the number of elements of a partial sum of [GradNorm].
const normGrain = 1 << 14

// GradNorm is the L2 norm of scale·g, summed in float64 over fixed chunks
// combined in order.
func GradNorm(g []float32, scale float32) float64 {
	sum := parallel.Sum(0, len(g), normGrain, func(lo, hi int) (s float64) {
		for _, v := range g[lo:hi] {
			s += float64(v) * float64(v)
		}
		return s
	})
	return math.Sqrt(sum) * math.Abs(float64(scale))
}

// ClipScale returns the scale to pass to an optimiser instead of scale so that the norm of scale·g
// is at most about limit, and the norm before clipping. The factor is min(1, limit/(norm+1e-6)), as
// in torch.nn.utils.clip_grad_norm_. g is only read, so it may be memory that ranks share.
func ClipScale(g []float32, scale float32, limit float64) (clipped float32, norm float64) {
	checkOption("ClipScale", "limit", limit, positive)
	norm = GradNorm(g, scale)
	return Clipped(scale, norm, limit), norm
}

// Clipped is the scale that [ClipScale] returns for a gradient of the given norm.
func Clipped(scale float32, norm, limit float64) float32 {
	return float32(float64(scale) * ClipFactor(norm, limit))
}

// ClipNorm scales g down in place by the factor of [ClipScale], so that the norm of scale·g is at
// most about limit, and returns the norm before clipping.
func ClipNorm(g []float32, scale float32, limit float64) (norm float64) {
	checkOption("ClipNorm", "limit", limit, positive)
	norm = GradNorm(g, scale)
	if c := float32(ClipFactor(norm, limit)); c < 1 {
		parallel.For(0, len(g), normGrain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				g[i] *= c
			}
		})
	}
	return norm
}

// ClipFactor is the factor by which [ClipScale] multiplies: min(1, limit/(norm+1e-6)), and 1 for a
// norm of NaN, so that the NaN stays visible.
func ClipFactor(norm, limit float64) float64 {
	if c := limit / (norm + 1e-6); c < 1 {
		return c
	}
	return 1
}

func fail(op, format string, args ...any) {
	panic(&tensor.Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}
