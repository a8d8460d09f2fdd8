package optim

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
)

// SparseAdam is the lazy form of Adam for a table of which a step touches few rows: weights and state
// of the other rows do not change. For step t and each touched row
//
//	g ← scale·g
//	m ← β1·m + (1-β1)·g
//	v ← β2·v + (1-β2)·g²
//	w ← w - lr·√(1-β2ᵗ)/(1-β1ᵗ) · m / (√v + ε)
//
// in float32, as torch.optim.SparseAdam: t counts the steps of the whole table, and a row's m and v do
// not decay at the steps that leave it out. State: exp_avg (m) and exp_avg_sq (v), each [rows, cols].
// There is no weight decay, as it would change all rows.
//
// A row is computed alone, so the ranks of a run can each step some of the rows of a table that they
// share. Bits do not depend on which rows are stepped together or on the number of threads.
//
// Source: torch.optim.SparseAdam of PyTorch 2; see [Adam] for the algorithm.
type SparseAdam struct {
	o     AdamOptions
	steps int64
	m, v  []float32
}

// NewSparseAdam returns a SparseAdam. It panics with a [*tensor.Error] for an invalid option, and for
// a WeightDecay.
func NewSparseAdam(o AdamOptions) *SparseAdam {
	if o.WeightDecay != 0 && o.WeightDecay != None || o.Decoupled {
		fail("NewSparseAdam", "it has no weight decay, because that would change all rows at each step; leave WeightDecay and Decoupled out")
	}
	return &SparseAdam{o: NewAdam(o).o}
}

// Name is "sparse_adam".
func (a *SparseAdam) Name() string { return "sparse_adam" }

// Steps is the number of steps so far.
func (a *SparseAdam) Steps() int64 { return a.steps }

// LR is the learning rate.
func (a *SparseAdam) LR() float64 { return a.o.LR }

// SetLR changes the learning rate from the next step on.
func (a *SparseAdam) SetLR(lr float64) {
	checkOption("SetLR", "LR", lr, notNegative)
	a.o.LR = lr
}

// State returns the state's memory: exp_avg and exp_avg_sq, empty before the first step unless
// [SparseAdam.SetState] gave it.
func (a *SparseAdam) State() []State { return []State{{adamState[0], a.m}, {adamState[1], a.v}} }

// SetState sets the number of steps, and the memory of the state: m and v, each as long as the table,
// are used and not copied, so ranks can share them. They hold zeros before the first step.
func (a *SparseAdam) SetState(steps int64, m, v []float32) error {
	if steps < 0 || len(m) != len(v) {
		return phrase.Errorf("optim", "the state of %s has %d steps, and %d elements in %s but %d in %s; steps cannot be negative and the numbers must be equal", a.Name(), steps, len(m), adamState[0], len(v), adamState[1])
	}
	a.steps, a.m, a.v = steps, m, v
	return nil
}

// Step updates the rows ids, all different, of the table w [rows, cols] by the gradient scale·g, where
// g [len(ids), cols] has the rows' gradients in the order of ids. It counts as a step also if there are
// no ids. It panics with a [*tensor.Error] if an id is not in the table or the sizes do not fit. Cost:
// O(len(ids)·cols), whatever the size of the table.
func (a *SparseAdam) Step(w []float32, cols int, ids []int32, g []float32, scale float32) {
	if cols < 1 || len(w)%cols != 0 || len(g) != len(ids)*cols {
		fail(a.Name(), "a table of %d weights in %d columns gets %d gradients for %d rows", len(w), cols, len(g), len(ids))
	}
	for i, v := range ids {
		if v < 0 || int(v) >= len(w)/cols {
			fail(a.Name(), "id %d is %d, but the table has %d rows", i, v, len(w)/cols)
		}
	}
	for _, s := range []*[]float32{&a.m, &a.v} {
		if len(*s) == 0 {
			*s = make([]float32, len(w))
		}
		if len(*s) != len(w) {
			fail(a.Name(), "the optimiser's state is for a table with %d weights, but this one has %d", len(*s), len(w))
		}
	}
	step := a.next(scale)
	parallel.For(0, len(ids), 1+4096/cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at, end := int(ids[i])*cols, (int(ids[i])+1)*cols
			simd.Adam(w[at:end], a.m[at:end], a.v[at:end], g[i*cols:(i+1)*cols], &step)
		}
	})
}

// next returns the coefficients of the next step. Unlike Adam's, ε is added to the root of the mean
// square before that is corrected, so the correction is in the size of the step.
func (a *SparseAdam) next(scale float32) simd.AdamStep {
	a.steps++
	o, t := a.o, float64(a.steps)
	return simd.AdamStep{
		Scale: scale, Keep: 1, Root: 1, Eps: float32(o.Eps),
		B1: float32(o.Beta1), C1: float32(1 - o.Beta1), B2: float32(o.Beta2), C2: float32(1 - o.Beta2),
		Size: float32(o.LR * math.Sqrt(1-math.Pow(o.Beta2, t)) / (1 - math.Pow(o.Beta1, t))),
	}
}
