package optim

import (
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Averaging says how to average a model's weights over the steps of training. It is a plain value, which travels to workers
// as JSON. The zero value means no average.
//
// Here times are steps. gnb.TrainOptions counts epochs instead, and calls [Averaging.Steps].
type Averaging struct {
	Kind  string  `json:",omitempty"` // "", "ema" or "swa"
	Decay float64 `json:",omitempty"` // of an "ema"
	// Start is the time at which a "swa" begins, and Every the time between the weights that it averages.
	Start float64 `json:",omitempty"`
	Every float64 `json:",omitempty"`
}

// EMA is the exponential moving average of the weights after each step: avg ← decay·avg + (1-decay)·w, from the weights after
// the first step, as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay).
func EMA(decay float64) Averaging { return Averaging{Kind: "ema", Decay: decay} }

// SWA is the mean of the weights at equal intervals, once per epoch for gnb.TrainOptions, after a start: stochastic weight
// averaging, as torch.optim.swa_utils.AveragedModel does by default. Before the end of the first interval after the
// start, the average is the weights themselves.
//
// Source: P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov, A. G. Wilson, "Averaging weights leads to wider optima and better
// generalization", UAI 2018, arXiv:1803.05407, algorithm 1.
func SWA(start float64) Averaging { return Averaging{Kind: "swa", Start: start, Every: 1} }

// Steps returns the averaging with its times, which are epochs, counted in steps.
func (a Averaging) Steps(perEpoch float64) Averaging {
	a.Start, a.Every = a.Start*perEpoch, a.Every*perEpoch
	return a
}

// Check returns an error, a sentence, if the averaging has no meaning in a training of the given time.
func (a Averaging) Check(total float64) error {
	switch {
	case a == Averaging{}:
	case a.Kind != "ema" && a.Kind != "swa":
		return phrase.Errorf("optim", "there is no average %q of the weights; it is ema or swa", a.Kind)
	case a.Kind == "ema" && !(a.Decay > 0 && a.Decay < 1):
		return phrase.Errorf("optim", "the decay of an exponential average is %v; it is above 0 and below 1, such as 0.99", a.Decay)
	case a.Kind == "swa" && !(a.Every > 0 && a.Start >= 0 && a.Start < total):
		return phrase.Errorf("optim", "an average of weights begins at %v, every %v, in a training of %v; it begins before the end, and its interval is above 0", a.Start, a.Every, total)
	}
	return nil
}

// String is the form that [ParseAveraging] reads, such as "ema:0.99" and "swa:5".
func (a Averaging) String() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch {
	case a.Kind == "ema":
		return "ema:" + number(a.Decay)
	case a.Kind == "swa" && a.Every == 1:
		return "swa:" + number(a.Start)
	case a.Kind == "swa":
		return "swa:" + number(a.Start) + ":" + number(a.Every)
	}
	return a.Kind
}

// ParseAveraging reads ema:DECAY, swa:START or swa:START:EVERY; "" is no average.
func ParseAveraging(s string) (Averaging, error) {
	if s == "" {
		return Averaging{}, nil
	}
	parts := strings.Split(s, ":")
	var v []float64
	for _, p := range parts[1:] {
		x, err := strconv.ParseFloat(p, 64)
		if err != nil {
			v = nil
			break
		}
		v = append(v, x)
	}
	var a Averaging
	switch {
	case parts[0] == "ema" && len(v) == 1 && len(parts) == 2:
		a = EMA(v[0])
	case parts[0] == "swa" && len(v) > 0 && len(v) < 3 && len(parts) == 1+len(v):
		if a = SWA(v[0]); len(v) == 2 {
			a.Every = v[1]
		}
	default:
		return a, phrase.Errorf("optim", "the average %q is not ema:DECAY or swa:START:EVERY, such as ema:0.99 or swa:5", s)
	}
	return a, a.Check(a.Start + 1)
}

var _ Optimizer = (*Averaged)(nil)

// Averaged is an optimiser that keeps an average of the weights after its steps, in a buffer of its own, which is part of its
// state ("average"). It steps in host memory.
type Averaged struct {
	Optimizer
	how Averaging
	avg []float32
}

// NewAveraged returns an optimiser that keeps an average; the times of how are steps. It panics with a [*tensor.Error] for an
// averaging without meaning.
func NewAveraged(o Optimizer, how Averaging) *Averaged {
	if err := how.Check(how.Start + 1); err != nil || how.Kind == "" {
		fail("NewAveraged", "the averaging is %+v: %v", how, err)
	}
	return &Averaged{Optimizer: o, how: how}
}

// Name is that of the optimiser, with the kind of the average.
func (a *Averaged) Name() string { return a.Optimizer.Name() + "+" + a.how.Kind }

// Average returns the average of the weights: the memory itself, nil before the first step.
func (a *Averaged) Average() []float32 { return a.avg }

// Step implements [Optimizer].
func (a *Averaged) Step(w, g []float32, scale float32) {
	a.Optimizer.Step(w, g, scale)
	if len(a.avg) != len(w) {
		a.avg = make([]float32, len(w))
	}
	t := a.Steps()
	share := 1 - a.how.Decay
	if a.how.Kind == "swa" {
		// The n-th weights are those after the last step of the n-th interval.
		n, before := a.intervals(t), a.intervals(t-1)
		if n > 0 && n == before {
			return
		}
		share = 1 / float64(max(n, 1))
	} else if t == 1 {
		share = 1
	}
	s := float32(share)
	parallel.For(0, len(w), stepGrain, func(lo, hi int) {
		if share == 1 {
			copy(a.avg[lo:hi], w[lo:hi])
			return
		}
		for i := lo; i < hi; i++ {
			a.avg[i] += float32((w[i] - a.avg[i]) * s)
		}
	})
}

// intervals is the number of whole intervals up to step t.
func (a *Averaged) intervals(t int64) int64 {
	return max(0, int64((float64(t)-a.how.Start)/a.how.Every))
}

// State implements [Optimizer].
func (a *Averaged) State() []State { return append(a.Optimizer.State(), State{"average", a.avg}) }

// SetState implements [Optimizer].
func (a *Averaged) SetState(steps int64, state map[string][]float32) error {
	rest := make(map[string][]float32, len(state))
	for name, s := range state {
		if name != "average" {
			rest[name] = s
		}
	}
	avg, ok := state["average"]
	if !ok || steps > 0 && len(avg) == 0 {
		return phrase.Errorf("optim", "the state of %s at step %d has no average of the weights", a.Name(), steps)
	}
	for _, s := range rest {
		if len(s) != len(avg) {
			return phrase.Errorf("optim", "the average of the weights has %d elements, and the state of %s %d", len(avg), a.Optimizer.Name(), len(s))
		}
	}
	if err := a.Optimizer.SetState(steps, rest); err != nil {
		return err
	}
	a.avg = append([]float32(nil), avg...)
	return nil
}
